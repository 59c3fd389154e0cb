import { ControlFleet, type ControlFleetOrder } from "./control-fleet.js";

/** A fleet in a process of its own; its order is the argument. Prints a line each second. */
const fleet = new ControlFleet(JSON.parse(process.argv[2] ?? "") as ControlFleetOrder);
await fleet.start();
setInterval(() => process.stdout.write(`${JSON.stringify(fleet.line)}\n`), 1_000);
