/** Time between two readings where nothing else is said, in milliseconds. */
const usualSampleMs = 100;

/** Reads a number again and again until the promise has settled: seconds from now, and number. */
export async function sampleDuring(
  promise: Promise<unknown>,
  read: () => Promise<number>,
  sampleMs = usualSampleMs,
): Promise<readonly (readonly [number, number])[]> {
  const samples: [number, number][] = [];
  const startMs = performance.now();
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  promise.then(end, end);
  while (!isOver) {
    samples.push([(performance.now() - startMs) / 1_000, await read()]);
    await new Promise((resolve) => setTimeout(resolve, sampleMs));
  }
  return samples;
}
