/** A name of ours as metrics and answers write values: `queueFull` is `queue_full`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
