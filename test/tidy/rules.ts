/**
 * The house as data: who may import what, what is banned where and what to use instead, and every
 * exception with its reason. To allow something new, change a row here, in the open.
 *
 * In patterns `*` stands for any part of one path segment, `**` for any rest and `{a,b}` for one
 * of several words. What an import reaches is a path (`src/core/limits/gcra.ts`), a package
 * (`npm:ioredis`) or a built-in (`node:fs`).
 */

/** Where HTTP statuses stand: ours, those that Envoy takes, and the static table of HPACK. */
export const statusTables: readonly string[] = [
  "src/core/base/http-status.ts",
  "src/policy/quotas/quota-settings.ts",
  "src/wire/hpack/hpack-table.ts",
];

/** What the files of one place may import; the first row that matches a file counts. */
export interface ImportRow {
  readonly from: string;
  readonly may: readonly string[];
}

const anyBuiltin = "node:**";
const anyPackage = "npm:**";

const rpcMay: readonly string[] = [
  "src/rpc/**",
  "src/core/**",
  "src/policy/**",
  "src/decide/**",
  "src/gen/**",
  "src/wire/grpc/service.ts",
  "src/fleet/fleet.ts",
  "npm:@bufbuild/protobuf",
  // Whether bytes are UTF-8.
  "node:buffer",
  "npm:@grpc/*",
];

/** The import table of the architecture. Imports of types count like any other. */
export const importRows: readonly ImportRow[] = [
  { from: "src/core/**", may: ["src/core/**"] },
  {
    from: "src/policy/**",
    may: ["src/policy/**", "src/core/**", "npm:yaml", "npm:zod", "npm:@marcbachmann/cel-js"],
  },
  {
    from: "src/store/redis/**",
    // A script is known by its SHA-1; sockets are made with the certificates of the moment.
    may: ["src/store/**", "src/core/**", "npm:ioredis", "node:crypto", "node:net", "node:tls"],
  },
  { from: "src/store/**", may: ["src/store/**", "src/core/**"] },
  {
    from: "src/decide/**",
    may: ["src/decide/**", "src/core/**", "src/policy/**", "src/store/limit-store.ts"],
  },
  {
    from: "src/wire/kafka/**",
    // SCRAM is made of hashes.
    may: ["src/wire/kafka/**", "src/core/**", "node:crypto", "node:stream"],
  },
  {
    from: "src/wire/**",
    // Connections are streams: sockets, and what stands for secured ones.
    may: ["src/wire/**", "src/core/**", "node:net", "node:stream", "node:tls", "node:zlib"],
  },
  // The admin API reads and changes what replicas share, and is served by a library.
  {
    from: "src/rpc/admin/**",
    may: [
      ...rpcMay,
      "src/fleet/records/{shared-records,override-record}.ts",
      "src/store/coordination/record-store.ts",
      "src/fleet/claims/replica-questions.ts",
      "src/fleet/regions/lender.ts",
      "npm:@connectrpc/connect",
      "npm:@connectrpc/connect/protocol",
    ],
  },
  // The Redis protocol has a transport of its own.
  {
    from: "src/rpc/resp/**",
    may: [...rpcMay, "src/wire/resp/{resp-connection,resp-writer}.ts"],
  },
  { from: "src/rpc/**", may: rpcMay },
  // Lending charges the stores of other regions.
  {
    from: "src/fleet/regions/**",
    may: ["src/fleet/regions/**", "src/core/**", "src/store/limit-store.ts"],
  },
  {
    from: "src/fleet/**",
    may: ["src/fleet/**", "src/core/**", "src/decide/sample*.ts", "src/store/coordination/**"],
  },
  {
    from: "src/generate/**",
    may: [
      "src/generate/**",
      "src/core/**",
      "src/policy/**",
      "src/gen/**",
      "npm:@bufbuild/*",
      "npm:ajv",
      "npm:yaml",
    ],
  },
  // What an Envoy, a policy and Headgate say, compared: texts in, findings out.
  { from: "src/doctor/**", may: ["src/{doctor,core,policy,generate}/**"] },
  {
    from: "src/simulate/**",
    // A simulated fleet decides with the embedded store, and shares permits and calls in flight
    // as replicas do.
    may: [
      "src/{simulate,core,policy,decide}/**",
      "src/store/{limit-store,memory}.ts",
      "src/store/coordination/{memory-permits,permit-store,memory-budgets,budget-store}.ts",
      "src/fleet/claims/permit-shares.ts",
      "src/fleet/budgets/{ledger-key-counts,store-budget-ledger}.ts",
    ],
  },
  // What callers did, and limits for them: requests in, proposals out.
  { from: "src/recommend/**", may: ["src/{recommend,simulate,core,policy,decide}/**"] },
  {
    from: "src/app/**",
    may: [
      "src/{app,core,policy,store,decide,wire,rpc,fleet,generate,simulate,doctor,host}/**",
      anyBuiltin,
      anyPackage,
    ],
  },
  {
    from: "src/cli/**",
    may: [
      "src/{cli,core,policy,generate,decide,simulate,recommend,doctor}/**",
      "src/{app,host,demo,programs,gen}/**",
      anyBuiltin,
      "npm:commander",
      "npm:@bufbuild/protobuf",
      // Commands talk to the admin port, and print their own explanations as it does.
      "npm:@connectrpc/*",
      "src/rpc/admin/connect-errors.ts",
      "src/rpc/admin/explain/explain-request.ts",
      "src/rpc/codec/plain-message.ts",
    ],
  },
  // A thread of the page: what the simulator decides with, and nothing of the page.
  {
    from: "src/console/worker/**",
    may: ["src/console/worker/**", "src/{simulate,recommend,policy,core}/**"],
  },
  // What a browser runs: what the admin API says, and nothing of the server.
  {
    from: "src/console/**",
    may: [
      "src/console/**",
      "src/gen/headgate/**",
      "src/core/base/{http-status,timestamp}.ts",
      "src/core/budgets/amount-text.ts",
      "src/core/collections/{history-columns,line-diff}.ts",
      "src/core/limits/{descriptor-text,key}.ts",
      "src/policy/parse.ts",
      "src/policy/waiting-rooms/page-file.ts",
      "src/simulate/log-reader.ts",
      "src/simulate/report/{csv,markup,report-style}.ts",
      "npm:@bufbuild/protobuf",
      "npm:@codemirror/*",
      "npm:@connectrpc/{connect,connect-web}",
      "npm:@preact/signals",
      "npm:preact",
      "npm:uplot",
    ],
  },
  // What the host says of itself: files of the kernel.
  {
    from: "src/host/**",
    may: [
      "src/host/**",
      "src/core/**",
      "node:crypto",
      "node:fs",
      "node:fs/promises",
      "node:os",
      "node:perf_hooks",
    ],
  },
  // A library for other programs: the laws, and the packages that its adapters are for.
  {
    from: "src/client/**",
    may: [
      "src/{client,host,core}/**",
      "node:http",
      "npm:@bufbuild/protobuf",
      "npm:@connectrpc/connect",
      "npm:@grpc/grpc-js",
      "npm:@opentelemetry/api",
      "npm:fastify",
      "npm:prom-client",
      "npm:undici",
    ],
  },
  // These run before anything is compiled, most of them before anything is installed.
  { from: "tools/**", may: ["tools/**", "src/programs/lock.mjs", anyBuiltin, "npm:esbuild"] },
  { from: "src/programs/**", may: ["src/{programs,app,host,core}/**", anyBuiltin] },
  { from: "src/demo/**", may: ["src/{demo,programs,app,client,host,core}/**", anyBuiltin] },
  { from: "test/**", may: ["src/**", "test/**", "tools/**", anyBuiltin, anyPackage] },
];

/** The only files of src that may import something; tests are free. */
export const importHomes: readonly { readonly what: string; readonly only: readonly string[] }[] = [
  { what: "npm:ioredis", only: ["src/store/redis/**"] },
  {
    what: "src/store/redis/**",
    only: ["src/store/redis/**", "src/app/{store,options,config}/**"],
  },
  {
    what: "npm:prom-client",
    only: ["src/app/base/metrics.ts", "src/client/metrics/prometheus.ts"],
  },
  {
    what: "npm:@opentelemetry/*",
    // Loaded only where something is sent: `app/telemetry` imports them by `import()`.
    only: ["src/app/telemetry/*-sdk.ts", "src/client/metrics/opentelemetry.ts"],
  },
  { what: "npm:pino", only: ["src/app/base/logger.ts"] },
  { what: "npm:pino-pretty", only: ["src/app/base/logger.ts"] },
  {
    what: "npm:@grpc/grpc-js",
    only: ["src/rpc/policy-xds/grpc-js-ads-stream.ts", "src/client/adapters/grpc-js.ts"],
  },
  {
    what: "npm:@connectrpc/connect-node",
    only: ["src/app/admin/admin-requests.ts", "src/cli/**"],
  },
  {
    what: "npm:@connectrpc/connect",
    only: [
      "src/rpc/admin/**",
      "src/app/admin/{admin-requests,shared-answers}.ts",
      "src/{cli,client,console}/**",
    ],
  },
  { what: "npm:jose", only: ["src/app/access/admin-oidc.ts"] },
  { what: "npm:commander", only: ["src/cli/**"] },
  { what: "npm:yaml", only: ["src/policy/**", "src/generate/**"] },
  { what: "src/gen/**", only: ["src/{rpc,generate,cli,console}/**"] },
];

/** Sizes above which a check fails; the advice (300 and 500 lines) is lower. */
export const sizeMax = {
  sourceLines: 500,
  testLines: 800,
  functionLines: 70,
  lineColumns: 100,
  positionalParameters: 3,
} as const;

/** The most files that one folder of src holds. */
export const folderFilesMax = 25;

/** Files whose functions may take more parameters, up to how many, and why. */
export const parameterRows: readonly {
  readonly path: string;
  readonly most: number;
  readonly reason: string;
}[] = [
  {
    path: "src/core/base/safe-integer-math.ts",
    most: 4,
    reason: "the terms of one formula on the decision path: an object for each call costs more",
  },
];

/** Globals, members and modules that only some places may touch. */
export interface TokenRow {
  /** `Date` is the global, `Math.random` a member of a global, `node:timers` a module. */
  readonly tokens: readonly string[];
  readonly allowed: readonly string[];
  readonly instead: string;
}

const slowTests = "test/{contract,fault,e2e,bench,support}/**";

/** The banned tokens. */
export const tokenRows: readonly TokenRow[] = [
  {
    tokens: ["Date", "performance", "node:perf_hooks", "process.hrtime", "process.uptime"],
    allowed: [
      "src/app/**",
      "src/host/{clock,event-loop-delay}.ts",
      "src/console/state/browser.ts",
      "src/programs/lock.mjs",
      "tools/*.mjs",
      slowTests,
      "test/run*.ts",
    ],
    instead: "take a Clock (src/core/base/clock.ts), or now as an argument",
  },
  {
    tokens: ["setTimeout", "setInterval", "node:timers", "node:timers/promises"],
    allowed: [
      "src/app/**",
      "src/host/clock.ts",
      "src/client/system.ts",
      "src/console/state/browser.ts",
      "src/programs/lock.mjs",
      "tools/*.mjs",
      "test/support/**",
      "test/bench/**",
      "test/run*.ts",
    ],
    instead: "use Clock.schedule; a test waits for a condition with test/support, or moves a clock",
  },
  {
    tokens: ["setImmediate"],
    allowed: ["src/app/**", "src/host/clock.ts", "test/**"],
    instead: "use Clock.scheduleTurn",
  },
  {
    tokens: ["AbortSignal.timeout"],
    allowed: ["src/app/**", "src/cli/**", slowTests],
    instead: "take a signal or a deadline from the caller",
  },
  {
    tokens: ["Math.random", "crypto.randomUUID", "crypto.getRandomValues"],
    allowed: ["src/app/**", "src/host/clock.ts", "src/console/state/browser.ts"],
    instead: "take a Random (src/core/base/clock.ts); a test makes one from a seed that it prints",
  },
  {
    tokens: ["process", "node:process"],
    allowed: ["src/app/**", "src/cli/**", "src/{demo,programs}/**", "tools/**", "test/**"],
    instead: "let src/app or src/cli hand in what is needed",
  },
  {
    tokens: ["console", "node:console"],
    allowed: [
      "src/app/**",
      "src/cli/**",
      "src/{demo,programs}/**",
      "tools/**",
      "test/{bench,mutate}/**",
      "test/run*.ts",
    ],
    instead: "report an event to the shell that owns the log",
  },
  {
    tokens: ["vi.mock", "vi.doMock", "vi.spyOn", "vi.useFakeTimers"],
    allowed: [],
    instead: "use a fake from test/support that passes the contract",
  },
];

/** `as` in src: where text or wire is decoded or a brand is put on, how often, and why. */
export const castRows: readonly {
  readonly path: string;
  readonly count: number;
  readonly reason: string;
}[] = [
  { path: "src/core/limits/key.ts", count: 4, reason: "puts the brand on a LimitKey" },
  {
    path: "src/core/budgets/reservation-id.ts",
    count: 2,
    reason: "puts the brand on a ReservationId",
  },
  { path: "src/core/quota/quota-holders.ts", count: 1, reason: "puts the brand on a QuotaHolder" },
  { path: "src/app/config/config.ts", count: 1, reason: "each row has parsed its own value" },
  { path: "src/policy/text/object.ts", count: 1, reason: "each row has read its own value" },
  {
    path: "src/app/policy/policy-worker.ts",
    count: 1,
    reason: "reads what our own thread was sent",
  },
  {
    path: "src/app/operator/policy-trial-worker.ts",
    count: 1,
    reason: "reads what our own thread was sent",
  },
  {
    path: "src/demo/three-layers/layers-caller-thread.ts",
    count: 1,
    reason: "reads what our own thread was sent",
  },
  {
    path: "src/demo/three-layers/layers-service-thread.ts",
    count: 1,
    reason: "reads what our own thread was sent",
  },
  {
    path: "src/core/collections/step-series.ts",
    count: 1,
    reason: "a column of each name is put in before",
  },
  {
    path: "src/store/coordination/record-text.ts",
    count: 1,
    reason: "decodes an object that JSON.parse made",
  },
];

/** Files of src that must write `null`, because an interface that is not ours asks for it. */
export const nullRows: readonly { readonly path: string; readonly reason: string }[] = [
  {
    path: "src/app/console/console.ts",
    reason: "in JSON an absent list of domains and all of them must not look alike",
  },
  { path: "src/app/base/logger.ts", reason: "pino leaves out its base fields for null" },
  {
    path: "src/policy/text/node-reader.ts",
    reason: "the YAML library has null for an empty value",
  },
  { path: "src/policy/limits/metadata.ts", reason: "the YAML library has null for an empty value" },
  { path: "src/policy/policy-places.ts", reason: "the YAML library has null for an empty value" },
  {
    path: "src/policy/format/format-policy.ts",
    reason: "the YAML library has null for an empty value",
  },
  {
    path: "src/policy/format/format-comments.ts",
    reason: "the YAML library has null for no comment",
  },
  {
    path: "src/generate/base/existing-object.ts",
    reason: "the YAML library has null for an empty value",
  },
  { path: "src/client/adapters/grpc-js.ts", reason: "grpc-js has null for no authentication" },
  { path: "src/client/adapters/undici.ts", reason: "undici has null for no reason and no fields" },
  { path: "src/core/base/json.ts", reason: "JSON and protobuf's Value have null" },
  {
    path: "src/rpc/policy-xds/rate-limit-config.ts",
    reason: "JSON and protobuf's Value have null",
  },
  { path: "src/console/parts/plot.tsx", reason: "the plot library has null for what is not known" },
  { path: "src/console/parts/editor-core.ts", reason: "the editor has null for no completion" },
  {
    path: "src/app/tls/tls-connection.ts",
    reason: "a stream ends with null, and without an error",
  },
];

/** Where the store behind an interface is called by its product's name, and why. */
export const storeNameHomes: readonly { readonly path: string; readonly reason: string }[] = [
  { path: "src/store/redis/**", reason: "speaks with it" },
  { path: "src/{wire,rpc}/resp/**", reason: "answers its clients, in its protocol" },
  { path: "src/core/limits/throttle.ts", reason: "names the source of a command" },
  { path: "src/app/{store,options,config}/**", reason: "chooses and opens it" },
  {
    path: "src/{generate,doctor,cli,demo,programs,gen}/**",
    reason: "deploys it, or speaks to people of it",
  },
  { path: "src/policy/**", reason: "the policy language, and envoyproxy/ratelimit, name it" },
  {
    path: "src/app/metrics/{stats*,reference-metrics}.ts",
    reason: "envoyproxy/ratelimit's statistics name it",
  },
  { path: "src/app/admission/signal-readers.ts", reason: "reads what the policy language names" },
];

/** Words that say nothing in a name, in the singular. */
export const emptyWords: readonly string[] = ["manager", "helper", "util", "impl"];

/** Words of our own that the field has better ones for; they do not come back into src. */
export const retiredWords: readonly { readonly word: RegExp; readonly instead: string }[] = [
  // But what browsers call their styles.
  {
    word: /(?<!")\b(?!CSSStyleSheet\b|adoptedStyleSheets\b)\w*(?:[Ss]heet)\w*/,
    instead: "snapshot",
  },
  { word: /\b(?:is|isNew|begin|endOf|EndOf)?[Rr]eigns?(?:[A-Z]\w*)?\b/, instead: "leader term" },
  { word: /\b(?:\w*[Ss]helf|\w*[a-z]Book)\b/, instead: "repository, registry" },
  { word: /\b[Ll]one(?! surrogate)(?:[A-Z]\w*)?\b/, instead: "in-process, in memory" },
  { word: /\b(?:lanes?|Lane\w*|\w*[a-z]Lane\w*)\b/, instead: "native transport" },
  // But the presets of the policy language.
  { word: /\b(?:is)?[Uu]sual(?!["`]|: default|, eager)\w*/, instead: "default" },
  { word: /\b(?:KnownRequests?|SeenCalls?|Sighting|RefusalCache)\b/, instead: "cache, sampler" },
  { word: /\b(?:told|tell)Rule[A-Z]\w*/, instead: "reported rule, rule disclosure" },
  {
    word: /\b(?:un)?told[A-Z]\w*|[a-z](?:Unt|T)old\b|\bTold[A-Z]\w*/,
    instead: "reported, assigned",
  },
  { word: /\b(?:const|let|readonly) told\b|\btold =/, instead: "reported" },
  { word: /\b[Rr]oads?\b|[a-z]Roads?\b/, instead: "route, routing" },
  {
    word: /\b(?:ToldRefusal|Newcomer|RoomAnswer|LeftHolder|TreatedCall)\b/,
    instead: "a role",
  },
  { word: /\bgrpcStatus: \d+\b/, instead: "grpcStatuses of core/base/grpc-status" },
  { word: /\blookInTurn|LookInTurn\b/, instead: "serialized poll" },
  { word: /\bpolic(?:y|ies) in force\b/i, instead: "active policy" },
  { word: /\b[dD]ip(?:s|ped|ping|[A-Z]\w*)?\b/, instead: "limit probe" },
  { word: /\bSlotTime\w*/, instead: "service time" },
  // What callers send stays text in a browser, too.
  { word: /\b(?:dangerouslySet)?(?:inner|outer)HTML\b|insertAdjacentHTML/i, instead: "text" },
];

/** Test folders under test/unit that mirror no folder of src. */
export const unmirroredFolders: readonly string[] = ["proto", "tidy", "tools"];

/** Where programs start; what package.json names in `bin` and `scripts` counts too. */
export const entries: readonly string[] = [
  "src/cli/main.ts",
  "src/app/policy/policy-worker.ts",
  "src/app/operator/policy-trial-worker.ts",
  "src/demo/three-layers/layers-caller-thread.ts",
  "src/demo/three-layers/layers-service-thread.ts",
  "tools/bootstrap.mjs",
  "src/console/app/main.tsx",
  "src/console/worker/simulator.ts",
  "test/support/lower-priority.ts",
  "tools/policy-action.mjs",
  "test/**/*.test.ts",
  "test/*.test.ts",
];

/** What package.json exports: other programs import these, and some of them only pass names on. */
export const libraryEntries: readonly string[] = [
  "src/client/{index,host}.ts",
  "src/client/adapters/{undici,grpc-js,connect}.ts",
  "src/client/server/{index,fastify,connect}.ts",
  "src/client/metrics/{prometheus,opentelemetry}.ts",
];

/** Packages that nothing imports or names, and why they are there. */
export const silentPackages: readonly { readonly name: string; readonly reason: string }[] = [
  { name: "express", reason: "a test requires it, since it has no types" },
  { name: "opossum", reason: "a bench requires it, since it has no types" },
  { name: "axe-core", reason: "its script is loaded into a browser's page, by its file's name" },
  { name: "@stryker-mutator/vitest-runner", reason: "Stryker loads it by its name" },
  { name: "vite", reason: "vitest's peer, held at the line that runs on Node 20" },
];

/** What the top level holds, and nothing else. */
export const topLevel: readonly string[] = [
  ".ci",
  ".dockerignore",
  ".gitignore",
  ".npmrc",
  ".pre-commit-hooks.yaml",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "Dockerfile",
  "LICENSE",
  "README.md",
  "SECURITY.md",
  "action.yml",
  "biome.json",
  "docker-compose.yml",
  "docs",
  "envoy",
  "k8s",
  "package-lock.json",
  "package.json",
  "proto",
  "scenarios",
  "src",
  "test",
  "tools",
  "tsconfig*.json",
  "vitest*.config.ts",
];

/** Made by the build or by tools, and never committed. */
export const untracked: readonly string[] = [
  "dist/**",
  "src/gen/**",
  "node_modules/**",
  "test-output/**",
];
