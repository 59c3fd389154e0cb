import type { Command } from "commander";
import { addApply } from "./apply.js";
import { addAudit } from "./audit.js";
import type { CommandContext } from "./context.js";
import { addEnforce } from "./enforce.js";
import { addExplain } from "./explain.js";
import { addFleet } from "./fleet.js";
import { addGate } from "./gate.js";
import { addHistory } from "./history.js";
import { addKeys } from "./keys.js";
import { addQuotas } from "./quotas.js";
import { addRollback } from "./rollback.js";
import { addRules } from "./rules.js";
import { addServices } from "./services.js";
import { addShadow } from "./shadow.js";
import { addTail } from "./tail.js";
import { addTop } from "./top.js";

/** Adds the commands that look at a Headgate that runs. */
export function addLookCommands(program: Command, context: CommandContext): void {
  addExplain(program, context);
  addRules(program, context);
  addTop(program, context);
  addTail(program, context);
  addQuotas(program, context);
  addServices(program, context);
  addFleet(program, context);
  addShadow(program, context);
  addHistory(program, context);
  addAudit(program, context);
}

/** Adds the commands that change something about it; two of them also look. */
export function addChangeCommands(program: Command, context: CommandContext): void {
  addKeys(program, context);
  addGate(program, context);
  addApply(program, context);
  addEnforce(program, context);
  addRollback(program, context);
}
