import { basename } from "node:path";
import type { Command } from "commander";
import { domainForms } from "../../policy/limits/domain.js";
import { policyForm } from "../../policy/policy-form.js";
import { visibleText } from "../../policy/problems/problem.js";
import { makeJsonSchema } from "../../policy/text/json-schema.js";
import { writeWholeFile } from "../input/whole-file.js";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";

/** Default file of `headgate schema --write`. */
export const schemaFileName = "headgate.schema.json";

/** Returns the JSON Schema of a policy file as text. */
export function policySchemaText(): string {
  return textOf(makeJsonSchema(policyForm, { title: "Headgate policy" }));
}

interface SchemaOptions {
  readonly ratelimit?: true | undefined;
  readonly scenario?: true | undefined;
  readonly write?: string | true;
}

/** Adds `headgate schema`: the JSON Schema of a policy file, for editors. */
export function addSchema(program: Command, context: CommandContext): void {
  const command = program
    .command("schema")
    .description("print or write the JSON Schema of a policy file, for editors")
    .option("--ratelimit", "the schema for envoyproxy/ratelimit files instead")
    .option("--scenario", "the schema for scenarios of `headgate simulate` instead")
    .option("--write [PATH]", `write it to a file; default ${schemaFileName}`);
  addHelpTexts(command, {
    examples: `
  headgate schema --write
  headgate schema --ratelimit --write ratelimit.schema.json
  sed -i '1i # yaml-language-server: $schema=${schemaFileName}' policy.yaml`,
    notes:
      "\nWith the schema, an editor completes and explains keys, and marks mistakes in a " +
      "single file.\n`headgate check` finds all mistakes, in all files together. Write the " +
      "schema again after an update.",
    exitCodes: "Exit codes: 0 printed or written, 1 cannot be written, 2 usage.",
  }).action(async ({ ratelimit, scenario, write }: SchemaOptions) => {
    const text = await schemaText({ ratelimit, scenario });
    if (write === undefined) return context.output.out(text.trimEnd());
    await writeSchema(write === true ? schemaFileName : write, text, context);
  });
}

async function schemaText({
  ratelimit,
  scenario,
}: Pick<SchemaOptions, "ratelimit" | "scenario">): Promise<string> {
  if (ratelimit === true) {
    return textOf(makeJsonSchema(domainForms.ratelimit, { title: "envoyproxy/ratelimit file" }));
  }
  if (scenario !== true) return policySchemaText();
  const { scenarioForm } = await import("../../policy/scenario/parse-scenario.js");
  return textOf(makeJsonSchema(scenarioForm, { title: "Headgate scenario" }));
}

async function writeSchema(file: string, text: string, { output }: CommandContext): Promise<void> {
  const path = visibleText(file);
  await writeWholeFile(file, text);
  const line = `# yaml-language-server: $schema=${visibleText(basename(file))}`;
  output.out(
    `Wrote ${path}. A policy in the same folder refers to it in its first line:\n  ${line}`,
  );
}

function textOf(schema: object): string {
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}
