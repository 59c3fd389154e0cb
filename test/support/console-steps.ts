/** A command of a console block, and the lines it must print; `…` stands for any text. */
export interface Step {
  readonly command: string;
  readonly lines: readonly string[];
}

/** The commands of a console block. */
export function steps(block: string): readonly Step[] {
  return block
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      const [command = "", ...lines] = text.trimEnd().split("\n");
      return { command, lines };
    });
}

/** What a command must print, and nothing else; a line of `…` stands for any lines. */
export function patternOf(lines: readonly string[]): RegExp {
  const parts = (lines.length === 0 ? [""] : lines).map((line) => {
    if (line === "…") return "(?:.*\\n)*";
    const texts = line.split("…").map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    return `${texts.join(".*")}\n`;
  });
  return new RegExp(`^${parts.join("")}$`);
}
