/**
 * A lock between processes: a folder that only one of them can make. Used before anything is
 * installed, hence plain JavaScript; lock.d.mts tells the compiler about it.
 */
import {
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 100;
/** A holder shows that it lives this often ... */
const beatMs = 2_000;
/** ... and is taken for dead after this silence: a machine under load may stall for a while. */
const silenceMaxMs = 30_000;
/** The longest that anyone waits: a slow network may take minutes to install. */
const waitMaxMs = 20 * 60_000;

/** See lock.d.mts. */
export async function withLock(path, work) {
  mkdirSync(dirname(path), { recursive: true });
  const release = await acquire(path);
  try {
    return await work();
  } finally {
    release();
  }
}

async function acquire(path) {
  const startedMs = performance.now();
  let reported = false;
  while (!tryAcquire(path)) {
    if (isAbandoned(path)) {
      takeAway(path);
      continue;
    }
    if (performance.now() - startedMs > waitMaxMs) {
      throw new Error(`gave up waiting for ${path}, which process ${readOwner(path)?.pid} holds`);
    }
    if (!reported) process.stderr.write("waiting for another process that is installing ...\n");
    reported = true;
    await sleep(pollMs);
  }
  const beat = setInterval(() => touch(path), beatMs);
  beat.unref();
  return () => {
    clearInterval(beat);
    // Not ours any more when this process was stopped for so long that another took over.
    if (isOurs(path)) rmSync(path, { recursive: true, force: true });
  };
}

function tryAcquire(path) {
  try {
    mkdirSync(path);
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
  writeFileSync(join(path, "owner"), JSON.stringify({ pid: process.pid, host: hostname() }));
  return true;
}

function isOurs(path) {
  const owner = readOwner(path);
  return owner?.pid === process.pid && owner.host === hostname();
}

function touch(path) {
  const now = new Date();
  if (isOurs(path)) utimesSync(path, now, now);
}

/** Abandoned: its process is gone, or nobody has touched it for a long time. */
function isAbandoned(path) {
  const owner = readOwner(path);
  if (owner !== undefined && owner.host === hostname() && !isAlive(owner.pid)) return true;
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && Date.now() - stat.mtimeMs > silenceMaxMs;
}

/** Undefined while the owner has not written it yet, or has just released the lock. */
function readOwner(path) {
  try {
    return JSON.parse(readFileSync(join(path, "owner"), "utf8"));
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/**
 * A rename is atomic, so of several that found the lock abandoned one takes it away. A slow one may
 * meet the lock of the next holder instead, and then puts it back.
 */
function takeAway(path) {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (error.code === "ENOENT") return;
    throw error;
  }
  if (isAbandoned(aside)) rmSync(aside, { recursive: true, force: true });
  else renameSync(aside, path);
}
