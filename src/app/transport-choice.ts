import type { OptionValues } from "./options.js";

/** What is wrong with the options together; undefined where they fit. */
export function findTransportProblem({
  transport,
  reflection,
}: Pick<OptionValues, "transport" | "reflection">): string | undefined {
  if (transport !== "lane" || !reflection) return undefined;
  return (
    "HEADGATE_REFLECTION needs HEADGATE_TRANSPORT=grpc-js: the lane does not serve reflection; " +
    "set one of them back"
  );
}
