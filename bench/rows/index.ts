import type { Row } from '../rounds/row.ts';
import { api } from './api.ts';
import { backlogPostgres } from './backlog-postgres.ts';
import { consoleRow } from './console.ts';
import { engines } from './engines.ts';
import { expectations } from './expectations.ts';
import { growthPostgres } from './growth-postgres.ts';
import { growthSqlite } from './growth-sqlite.ts';
import { isolation } from './isolation.ts';
import { latencyPostgres, latencySqlite } from './latency.ts';
import { receiveExpress, receiveFastify, receivePostgres, receiveSqlite } from './receive.ts';
import { telemetry } from './telemetry.ts';
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
  growthSqlite,
  growthPostgres,
  backlogPostgres,
  expectations,
  consoleRow,
  telemetry,
  isolation,
];
