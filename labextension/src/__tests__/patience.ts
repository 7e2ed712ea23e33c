/** For waits in tests: the default of one second is too short on a busy machine. */
export const PATIENT = { timeout: 60_000 };
