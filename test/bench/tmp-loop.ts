import { measureFleetLoop } from "./fleet-loop.js";
for (const n of (process.argv[2] ?? "1000").split(",").map(Number)) console.log(JSON.stringify(measureFleetLoop(n, 20)));
