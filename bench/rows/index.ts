import type { Row } from '../rounds/row.ts';
import { api } from './api.ts';
import { backlogPostgres } from './backlog-postgres.ts';
import { consoleRow } from './console.ts';
import { disk } from './sqlite-disk.ts';
import { engines } from './engines.ts';
import { expectations } from './expectations.ts';
import { growthPostgres } from './growth-postgres.ts';
import { growthSqlite } from './growth-sqlite.ts';
import { isolation } from './isolation.ts';
import { latencyPostgres } from './latency-postgres.ts';
import { latencySqlite } from './latency-sqlite.ts';
import { memory } from './memory.ts';
import { receiveExpress } from './receive-express.ts';
import { receiveFastify } from './receive-fastify.ts';
import { receivePostgres } from './receive-postgres.ts';
import { receiveSqlite } from './receive-sqlite.ts';
import { start } from './start.ts';
import { telemetry } from './telemetry.ts';
import { token } from './token.ts';
import { verify } from './verify.ts';
import { workPostgres } from './work-postgres.ts';
import { workSqlite } from './work-sqlite.ts';

/** All rows, in the order of the run and of the page. */
export const ROWS: readonly Row[] = [
  verify,
  receiveExpress,
  receiveFastify,
  receiveSqlite,
  receivePostgres,
  latencyPostgres,
  latencySqlite,
  workPostgres,
  workSqlite,
  engines,
  api,
  token,
  growthSqlite,
  growthPostgres,
  backlogPostgres,
  expectations,
  consoleRow,
  telemetry,
  disk,
  isolation,
  memory,
  start,
];
