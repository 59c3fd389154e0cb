/** Description of a command for a shell. */
export interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** Possible values of its arguments. */
  readonly words: CompletedWords;
  readonly commands: readonly CompletedCommand[];
}

/** An option of a command. */
export interface CompletedOption {
  /** Such as `-o` and `--output`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Undefined: it takes no value. */
  readonly value: CompletedWords | undefined;
}

/** Possible words at a position; `file`: paths. */
export type CompletedWords =
  | { readonly kind: "choices"; readonly choices: readonly string[] }
  | { readonly kind: "file" | "folder" | "any" };

/** Shells with a completion script. */
export const shells = ["bash", "zsh", "fish"] as const;

/** One of `shells`. */
export type Shell = (typeof shells)[number];

/** Returns a script that completes commands, options and choices of a program in a shell. */
export function completionScript(shell: Shell, program: CompletedCommand): string {
  switch (shell) {
    case "bash":
      return bashScript(program);
    case "zsh":
      return zshScript(program);
    case "fish":
      return fishScript(program);
  }
}

interface PlacedCommand {
  /** Words that lead to the command, without the program's name. */
  readonly path: readonly string[];
  readonly command: CompletedCommand;
}

function placed(command: CompletedCommand, path: readonly string[] = []): readonly PlacedCommand[] {
  const inner = command.commands.flatMap((one) => placed(one, [...path, one.name]));
  return [{ path, command }, ...inner];
}

/** Puts a text in single quotes that all three shells understand. */
function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "'\\''")}'`;
}

function plain(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function offered(command: CompletedCommand): readonly string[] {
  const flags = [...command.options.flatMap((option) => option.flags), "--help"];
  const words = command.words.kind === "choices" ? command.words.choices : [];
  return [...new Set([...command.commands.map(({ name }) => name), ...words, ...flags])];
}

function bashScript(program: CompletedCommand): string {
  const all = placed(program);
  const functionName = `_${program.name}_complete`;
  const values = all.flatMap(({ path, command }) =>
    command.options.flatMap((option) => bashValue(path, option)),
  );
  const words = all.map(({ path, command }) => {
    const files = command.words.kind === "file" || command.words.kind === "folder" ? 1 : 0;
    const offers = plain(offered(command).join(" "));
    return `    ${plain(path.join(" "))}) words=${offers}; files=${files} ;;`;
  });
  const commands = all.filter(({ path }) => path.length > 0).map(({ path }) => path.join(" "));
  return `\
# Completion of ${program.name} for bash. Put it into ~/.bashrc:
#   source <(${program.name} completion bash)
${functionName}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]}
  local at='' word next words='' files=0 i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    next="\${at:+$at }$word"
    case "$next" in
      ${commands.map(plain).join("|")}) at=$next ;;
    esac
  done
  case "$at $prev" in
${values.join("\n")}
  esac
  case "$at" in
${words.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [[ $files == 1 && $cur != -* ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -- "$cur"))
  fi
}
complete -F ${functionName} ${program.name}`;
}

/** Returns the completion of an option's value. */
function bashValue(path: readonly string[], { flags, value }: CompletedOption): readonly string[] {
  if (value === undefined) return [];
  const places = flags.map((flag) => plain(`${path.join(" ")} ${flag}`)).join("|");
  return [`    ${places}) ${bashReply(value)} return ;;`];
}

function bashReply(value: CompletedWords): string {
  switch (value.kind) {
    case "choices":
      return `COMPREPLY=($(compgen -W ${plain(value.choices.join(" "))} -- "$cur"));`;
    case "file":
      return `compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur"));`;
    case "folder":
      return `compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur"));`;
    case "any":
      return "";
  }
}

function zshScript(program: CompletedCommand): string {
  const functions = placed(program).map(({ path, command }) => zshFunction(program, path, command));
  const name = zshName(program, []);
  return `\
#compdef ${program.name}
# Completion of ${program.name} for zsh. Put it into ~/.zshrc, below compinit:
#   source <(${program.name} completion zsh)
${functions.join("\n\n")}

if [ "$funcstack[1]" = "${name}" ]; then ${name} "$@"; else compdef ${name} ${program.name}; fi`;
}

function zshName(program: CompletedCommand, path: readonly string[]): string {
  return `_${[program.name, ...path].join("_").replaceAll("-", "_")}`;
}

function zshFunction(
  program: CompletedCommand,
  path: readonly string[],
  { options, commands, words }: CompletedCommand,
): string {
  const name = zshName(program, path);
  const rows = options.flatMap((option) => zshOptions(option));
  if (commands.length === 0) {
    const rest = zshAction(words);
    const all = [...rows, plain(`*::word:${rest}`)].join(" \\\n    ");
    return `${name}() {\n  _arguments -s \\\n    ${all}\n}`;
  }
  const described = commands.map((one) => plain(`${one.name}:${zshText(one.description)}`));
  const cases = commands.map(
    (one) => `      ${one.name}) ${zshName(program, [...path, one.name])} ;;`,
  );
  return `\
${name}() {
  local state line
  local -a commands
  commands=(
    ${described.join("\n    ")}
  )
  _arguments -C \\
    ${[...rows, "'1: :->command'", "'*:: :->rest'"].join(" \\\n    ")}
  case $state in
    command) _describe command commands ;;
    rest) case $line[1] in
${cases.join("\n")}
      esac ;;
  esac
}`;
}

/** Escapes brackets and colons, which separate the parts of a row of \`_arguments\`. */
function zshText(text: string): string {
  return text.replaceAll(/[\\[\]:]/g, "\\$&");
}

function zshOptions({ flags, description, value }: CompletedOption): readonly string[] {
  const action = value === undefined ? "" : `:value:${zshAction(value)}`;
  return flags.map((flag) => plain(`*${flag}[${zshText(description)}]${action}`));
}

function zshAction(words: CompletedWords): string {
  switch (words.kind) {
    case "choices":
      return `(${words.choices.join(" ")})`;
    case "file":
      return "_files";
    case "folder":
      return "_files -/";
    case "any":
      return " ";
  }
}

function fishScript(program: CompletedCommand): string {
  const rows = placed(program).flatMap(({ path, command }) => fishRows(program, path, command));
  return `\
# Completion of ${program.name} for fish. Put it into a file of fish's own:
#   ${program.name} completion fish > ~/.config/fish/completions/${program.name}.fish
function __${program.name}_at
  set -l at
  for word in (commandline -opc)[2..-1]
    switch (string join -- ' ' $at $word)
      case ${commandPaths(program).map(quoted).join(" ")}
        set at $at $word
    end
  end
  test "$at" = "$argv"
end
complete -c ${program.name} -f
${rows.join("\n")}`;
}

function commandPaths(program: CompletedCommand): readonly string[] {
  return placed(program)
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => path.join(" "));
}

function fishRows(
  program: CompletedCommand,
  path: readonly string[],
  { commands, options, words }: CompletedCommand,
): readonly string[] {
  const condition = quoted([`__${program.name}_at`, ...path].join(" "));
  const start = `complete -c ${program.name} -n ${condition}`;
  const rows = commands.map((one) => `${start} -a ${one.name} -d ${quoted(one.description)}`);
  if (words.kind === "choices") rows.push(`${start} -a ${quoted(words.choices.join(" "))}`);
  if (words.kind === "file" || words.kind === "folder") rows.push(`${start} -F`);
  return [...rows, ...options.map((option) => `${start} ${fishOption(option)}`)];
}

function fishOption({ flags, description, value }: CompletedOption): string {
  const names = flags.map((flag) =>
    flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
  );
  const reported = [...names, `-d ${quoted(description)}`];
  if (value === undefined) return reported.join(" ");
  if (value.kind === "choices") reported.push(`-x -a ${quoted(value.choices.join(" "))}`);
  else reported.push(value.kind === "any" ? "-x" : "-r -F");
  return reported.join(" ");
}
