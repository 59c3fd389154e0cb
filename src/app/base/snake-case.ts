/** A name of ours as metrics write values of labels: `queueFull` is `queue_full`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
