import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startPostgres } from 'test-postgres';
import { writeDocumentedCode } from '../documented-code.ts';
import type { SmokePart } from '../smoke-part.ts';
import { StrictApplication } from '../strict-typescript-application.ts';

const NEST = {
  '@nestjs/common': '12.5.1',
  '@nestjs/config': '12.0.1',
  '@nestjs/core': '12.5.1',
  '@nestjs/platform-express': '12.5.1',
  '@types/pg': '8.23.1',
  'class-transformer': '0.5.1',
  'class-validator': '0.15.1',
  pg: '8.23.1',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
};

/** Packages that each example of docs/orm.md needs. The files of an example are in a folder with its name. */
const EXAMPLES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  pg: {},
  drizzle: { 'drizzle-orm': '0.45.4' },
  'nestjs-cls': {
    '@nestjs/typeorm': '12.0.2',
    typeorm: '1.1.1',
    '@nestjs-cls/transactional': '3.3.0',
    '@nestjs-cls/transactional-adapter-typeorm': '1.4.1',
    'nestjs-cls': '6.3.1',
  },
  'mikro-orm': {
    '@mikro-orm/core': '7.2.1',
    '@mikro-orm/nestjs': '7.1.0',
    '@mikro-orm/postgresql': '7.2.1',
  },
  kysely: { kysely: '0.29.9' },
  knex: { knex: '3.3.0' },
};
/** Drizzle uses the database client of the inbox, and `@nestjs-cls/transactional` opens the transaction itself. */
const SELECTION = ['drizzle', 'nestjs-cls'];

export const part: SmokePart = {
  description:
    'the code of docs/orm.md that is no application of examples/: compiles, and books exactly once in PostgreSQL',
  async run({ payments, root, folder, all }, checks) {
    const names = all ? Object.keys(EXAMPLES) : SELECTION;
    const dependencies = Object.assign({}, NEST, ...names.map((name) => EXAMPLES[name]));
    const application = await StrictApplication.install(folder, [payments], dependencies);
    const sources = join(folder, 'src');
    await cp(join(root, 'test/smoke/fixtures/orm'), sources, { recursive: true });
    // The Drizzle example uses the module of the pg example.
    await writeDocumentedCode(join(root, 'docs/orm.md'), sources, (file) => {
      const example = file.includes('/') ? file.split('/')[0]! : 'pg';
      return [...names, 'pg'].includes(example);
    });
    await cp(join(sources, 'pg'), join(sources, 'drizzle'), { recursive: true, force: false });

    await checks.that(`AP-07 ${names.join(', ')}: the documented code compiles with strict`, () =>
      application.compile(),
    );
    const server = await startPostgres();
    try {
      const tables = await readFile(join(sources, 'tables.sql'), 'utf8');
      for (const name of names) {
        await checks.that(
          `AP-07 ${name}: the documented code books exactly once after a rollback and a retry`,
          async () => {
            const database = await server.createDatabase();
            await server.query(database, tables);
            await application.run(['dist/main.js', name], {
              DATABASE_URL: database,
              PAYMENTS_BASE_URL: 'https://payments.example.com',
              PAYMENTS_CLIENT_ID: 'client',
              PAYMENTS_CLIENT_SECRET: 'secret',
              PAYMENTS_WEBHOOK_SECRET: 'whsec_R8s0xkq2vT5uY7wZ',
            });
          },
        );
      }
    } finally {
      await server.end();
    }
  },
};
