import { afterEach } from "vitest";

/** Sets variables of this process for the length of a test. */
export interface TestEnvironment {
  set(name: string, value: string): void;
}

/** Call it once, at the top: libraries of OpenTelemetry read the environment of their process. */
export function useEnvironment(): TestEnvironment {
  const before = new Map<string, string | undefined>();
  afterEach(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    before.clear();
  });
  return {
    set: (name, value) => {
      if (!before.has(name)) before.set(name, process.env[name]);
      process.env[name] = value;
    },
  };
}
