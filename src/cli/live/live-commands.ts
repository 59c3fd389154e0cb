import { addBudgets } from "./budgets.js";

import { addGate } from "./gate.js";
import { addKeys } from "./keys.js";
import { addQuotas } from "./quotas.js";
import { addRooms } from "./rooms.js";
import { addRules } from "./rules.js";
import { addFleet, addServices } from "./services.js";
import { addTail } from "./tail.js";
import { addTop } from "./top.js";

/** Commands that call a running Headgate. Loaded together, since they share most modules. */
export const liveCommands = {
  rules: addRules,
  top: addTop,
  tail: addTail,
  quotas: addQuotas,
  services: addServices,
  fleet: addFleet,
  keys: addKeys,
  gate: addGate,
  rooms: addRooms,
  budgets: addBudgets,
};
