import type { Command } from "commander";
import { domainForms } from "../../policy/limits/domain.js";
import { policyForm } from "../../policy/policy-form.js";
import { makeJsonSchema } from "../../policy/text/json-schema.js";
import type { CommandContext } from "../terminal/context.js";

/** Adds `headgate schema`: prints the JSON Schema of a policy file, for editors. */
export function addSchema(program: Command, { output }: CommandContext): void {
  program
    .command("schema")
    .description("print the JSON Schema of a policy file, for editors")
    .option("--ratelimit", "of a file of envoyproxy/ratelimit instead")
    .addHelpText(
      "before",
      `Examples:
  headgate schema > headgate.schema.json
  sed -i '1i # yaml-language-server: $schema=headgate.schema.json' policy.yaml
`,
    )
    .addHelpText(
      "after",
      `
An editor that knows the schema completes names, explains them and marks mistakes in a single file;
\`headgate check\` finds all mistakes, of all files together.

Exit codes: 0 printed, 2 usage.`,
    )
    .action(({ ratelimit }: { readonly ratelimit?: true }) => {
      const schema =
        ratelimit === true
          ? makeJsonSchema(domainForms.ratelimit, { title: "envoyproxy/ratelimit file" })
          : makeJsonSchema(policyForm, { title: "Headgate policy" });
      output.out(JSON.stringify(schema, undefined, 2));
    });
}
