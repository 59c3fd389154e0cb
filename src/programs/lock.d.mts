/**
 * Runs work while no other process (or caller) holds the lock of the same path, and releases it
 * when work ends either way. Waits up to 20 minutes; takes over from a holder that died.
 * @param path - a folder that must not exist otherwise; its parent is made
 */
export declare function withLock<T>(path: string, work: () => Promise<T>): Promise<T>;
