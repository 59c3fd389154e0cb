/**
 * `windowAt` of `core/limits/window` a second time, in Lua, for scripts that know `nowUs`: from
 * when on, and until when, the window counts that holds now.
 */
export const windowText = `
local function windowAt(startUs, endUs, nextEndUs)
  if nowUs < startUs then return 0, startUs end
  if nowUs < endUs then return startUs, endUs end
  if nowUs < nextEndUs then return endUs, nextEndUs end
  local lengthUs = nextEndUs - endUs
  local passed = (nowUs - nextEndUs) / lengthUs
  local laterUs = nextEndUs + (passed - passed % 1) * lengthUs
  return laterUs, laterUs + lengthUs
end
`;
