/**
 * Where Stryker begins. Plain JavaScript with types of its own beside it, since the types of
 * Stryker's packages do not hold under this project's compiler options.
 */
import { Stryker } from "@stryker-mutator/core";
import { Instrumenter } from "@stryker-mutator/instrumenter";

export async function findMutants(files) {
  // Of an instrumented file only its mutants are wanted; to print it takes long.
  const instrumenter = new Instrumenter(silence, undefined, () => "");
  const { mutants } = await instrumenter.instrument(
    files.map(({ path, text }) => ({ name: path, content: text, mutate: true })),
    { ignorers: [], excludedMutations: [], plugins: null },
  );
  return mutants.map(({ fileName, location, mutatorName, replacement }) => {
    return { path: fileName, ...location, mutatorName, replacement };
  });
}

export async function runMutants(options) {
  return await new Stryker(options).runMutationTest();
}

const ignore = () => {};
const never = () => false;

const silence = {
  isTraceEnabled: never,
  isDebugEnabled: never,
  isInfoEnabled: never,
  isWarnEnabled: never,
  isErrorEnabled: never,
  isFatalEnabled: never,
  trace: ignore,
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  fatal: ignore,
};
