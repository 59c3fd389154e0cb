/**
 * For `node --import`: writes the name of each file of the built program that this process and its
 * threads load into the file that LOADED_FILES names.
 */
import { appendFileSync } from "node:fs";
import { register } from "node:module";
import { basename } from "node:path";
import { isMainThread } from "node:worker_threads";

let log = "";

if (isMainThread) register(import.meta.url, { data: process.env.LOADED_FILES });

export function initialize(path) {
  log = path;
}

export function load(url, context, next) {
  if (url.includes("/dist/")) appendFileSync(log, `${basename(url)}\n`);
  return next(url, context);
}
