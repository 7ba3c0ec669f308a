import { Pool } from 'pg';
import type { PoolClient, PoolConfig } from 'pg';

/** A statement that the inbox ran, and how many rows it returned. */
export interface RecordedStatement {
  readonly text: string;
  readonly values: unknown[];
  readonly rows: number;
}

/** A pool that records the statements of the inbox, in the order in which they ended. */
export class RecordingPool extends Pool {
  readonly recorded: RecordedStatement[] = [];
  /** Called before each statement, which runs when the result resolves. */
  before: (text: string) => Promise<unknown> = async () => {};

  constructor(options: PoolConfig) {
    super(options);
    this.on('connect', (client) => this.#record(client));
  }

  #record(client: PoolClient): void {
    const query = client.query.bind(client) as (config: {
      readonly text: string;
      readonly values: unknown[];
    }) => Promise<{ readonly rows: unknown[] }>;
    const recording = async (...[config]: Parameters<typeof query>) => {
      await this.before(config.text);
      const result = await query(config);
      this.recorded.push({ ...config, rows: result.rows?.length ?? 0 });
      return result;
    };
    Object.assign(client, { query: recording });
  }
}
