/**
 * A message as a plain object: all fields, and no schema. Code that only prints it need not load
 * the protobuf library, whose descriptors take 35 ms of CPU.
 */
export type Plain<T> = T extends bigint | boolean | number | string | undefined
  ? T
  : T extends (infer Item)[]
    ? Plain<Item>[]
    : { [Name in keyof T as Exclude<Name, "$typeName" | "$unknown">]: Plain<T[Name]> };
