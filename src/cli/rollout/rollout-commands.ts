import { addApply } from "./apply.js";
import { addAudit } from "./audit.js";
import { addEnforce } from "./enforce.js";
import { addHistory } from "./history.js";
import { addRollback } from "./rollback.js";
import { addShadow } from "./shadow.js";

/** Commands of rollouts. They are loaded together because they share most modules. */
export const rolloutCommands = {
  shadow: addShadow,
  history: addHistory,
  audit: addAudit,
  apply: addApply,
  enforce: addEnforce,
  rollback: addRollback,
};
