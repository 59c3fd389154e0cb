// Preloaded into a process: its wall clock begins at TEST_CLOCK_AT and jumps to the next of
// TEST_CLOCK_STEPS at each SIGUSR2. Both are times of ISO 8601, the latter separated by commas.
const realNow = Date.now;
const steps = (process.env.TEST_CLOCK_STEPS ?? "").split(",");
let shiftMs = 0;

function setTo(text) {
  shiftMs = Date.parse(text) - realNow();
}

setTo(process.env.TEST_CLOCK_AT);
Date.now = () => realNow() + shiftMs;
process.on("SIGUSR2", () => {
  const next = steps.shift();
  if (next !== undefined) setTo(next);
});
