import { hash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { functions, MIGRATIONS as POSTGRES } from './postgres/migrate.js';
import { MIGRATIONS as SQLITE } from './sqlite/migrate.js';

/** The hash of each migration, and of the functions of the newest version of PostgreSQL. */
const PINNED = {
  sqlite: ['e190d864550af663'],
  postgres: ['b14d483a5ba18f4e'],
  postgresFunctions: '1493b3d2edc68978',
};

const hashOf = (text: string): string => hash('sha256', text, 'hex').slice(0, 16);

describe('the versions of the schemas', () => {
  // If this fails: before the release of a version, write the received hashes into PINNED. After it, undo the change, and add a
  // migration, which may be empty if only functions of PostgreSQL change. See docs/inbox-stores.md.
  it('a released version of a schema never changes', () => {
    expect({
      sqlite: SQLITE.map(hashOf),
      postgres: POSTGRES.map((step) => hashOf(step('s'))),
      postgresFunctions: hashOf(functions('s')),
    }).toEqual(PINNED);
  });
});
