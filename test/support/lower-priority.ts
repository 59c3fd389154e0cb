import { setPriority } from "node:os";

/**
 * For a kind of tests that runs beside others: this process has the time that they leave, and a
 * tenth of a core at least where they leave none.
 */
setPriority(10);
