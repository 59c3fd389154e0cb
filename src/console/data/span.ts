const units: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Reads a duration in milliseconds: `90s`, `12h30m`, `3d`; undefined if it is invalid. */
export function readSpan(text: string): number | undefined {
  const trimmed = text.trim();
  if (!/^(?:\d{1,6}[smhdw])+$/.test(trimmed)) return undefined;
  let ms = 0;
  for (const [, count = "", unit = ""] of trimmed.matchAll(/(\d+)([smhdw])/g)) {
    ms += Number(count) * (units[unit] ?? 0);
  }
  return ms === 0 ? undefined : ms;
}
