/**
 * Commands of the built program, one after the other in this process. A request is texts that each
 * end with a zero byte: the folder, the number of words, the words, the variables as `env -0` has
 * them, and an empty one. The response is a line: the exit code, and the paths of two files with
 * what the command wrote to standard output and standard error.
 *
 * Usage: node command-host-program.mjs FOLDER
 */
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

const main = new URL("../../dist/cli/main.js", import.meta.url).href;
const [, , folder = ""] = process.argv;
const streams = { out: process.stdout, err: process.stderr };
let count = 0;
let last = Promise.resolve();

/** Runs one; answers its response. */
async function run(texts) {
  const [cwd = "", wordCount = ""] = texts;
  const variables = texts.slice(2 + Number(wordCount));
  process.chdir(cwd);
  process.argv = [...process.argv.slice(0, 2), ...texts.slice(2, 2 + Number(wordCount))];
  process.env = Object.fromEntries(variables.map((pair) => pair.split(/=(.*)/s, 2)));
  process.exitCode = 0;
  const printed = { out: "", err: "" };
  for (const [name, stream] of Object.entries(streams)) {
    stream.write = (text) => {
      printed[name] += text;
      return true;
    };
  }
  count += 1;
  try {
    // Its file anew, which runs the command; all others are loaded already.
    await import(`${main}?${count}`);
  } catch (thrown) {
    printed.err += `${thrown.stack}\n`;
    process.exitCode = 1;
  }
  const paths = Object.entries(printed).map(([name, text]) => {
    const path = join(folder, `${count}.${name}`);
    writeFileSync(path, text);
    return path;
  });
  return `${process.exitCode} ${paths.join(" ")}\n`;
}

const server = createServer((socket) => {
  let request = "";
  // A shell that was killed.
  socket.on("error", () => {});
  socket.setEncoding("utf8").on("data", (chunk) => {
    request += chunk;
    if (!request.endsWith("\0\0")) return;
    const texts = request.slice(0, -2).split("\0");
    last = last.then(async () => void socket.end(await run(texts)));
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`port ${server.address().port}\n`));
