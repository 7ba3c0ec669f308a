import type { EngineName } from 'test-postgres/engines/create-engine-adapter';

/** The worker services. */
export const SERVICES = ['ledger', 'mail'] as const;

/** The environment variables of the gateway and of a worker service. */
export type EngineSettings = Readonly<{
  DEMO_ENGINE: EngineName;
  DEMO_ENGINE_URL: string;
  /** A name from {@link SERVICES}, or `gateway`. */
  DEMO_SERVICE: string;
  /** The SQLite file of the inbox. */
  DEMO_FILE: string;
}>;
