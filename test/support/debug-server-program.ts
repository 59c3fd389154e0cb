/** A debug server that anybody may take profiles of, in a small process; it prints its port. */

import { listen } from "../../src/app/base/listen.js";
import { createDebugServer } from "../../src/app/observability/debug-http.js";

const server = createDebugServer({
  mayProfile: async () => true,
  onBug: (bug) => process.stderr.write(`${bug}\n`),
});
const settings = { hostSetting: "DEBUG_HOST", portSetting: "DEBUG_PORT", connectionsMax: 10 };
const { port } = await listen(server, { host: "127.0.0.1", port: 0, ...settings });
process.stdout.write(`${port}\n`);
