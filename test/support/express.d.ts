/** What tests use of Express, whose package has no types. */
declare module "express" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  interface Application {
    (request: IncomingMessage, response: ServerResponse): void;
    use(handler: (...given: never[]) => void): void;
  }

  // biome-ignore lint/style/noDefaultExport: the package has one
  export default function express(): Application;
}
