import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const FOLDER = import.meta.dirname;

/** Returns the versions of Node and of the measured packages. @throws Error if several copies of Nest are installed. */
export function versions(): Record<string, string> {
  const from = createRequire(join(FOLDER, 'main.ts'));
  const nest = createRequire(join(FOLDER, 'node_modules/@golevelup/nestjs-stripe/package.json'));
  const copies = [from, nest, createRequire(from.resolve('nestjs-payments/package.json'))].map(
    (one) => one.resolve('@nestjs/core'),
  );
  if (new Set(copies).size > 1) {
    throw new Error(
      `There are several copies of Nest, which do not work together: ${copies.join(', ')}`,
    );
  }
  const names = [
    'nestjs-payments',
    '@nestjs/core',
    'express',
    'fastify',
    'axios',
    'pg',
    '@nats-io/jetstream',
    'rabbitmq-client',
    ...peers(),
  ];
  const found = names.map((name) => [name, versionOf(from.resolve.paths(name) ?? [], name)]);
  return { node: process.version, ...Object.fromEntries(found) };
}

function peers(): string[] {
  const file = join(FOLDER, 'package.json');
  const { dependencies } = JSON.parse(readFileSync(file, 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return Object.keys(dependencies);
}

function versionOf(folders: readonly string[], name: string): string {
  const file = folders.map((folder) => join(folder, name, 'package.json')).find(existsSync);
  if (file === undefined) return 'not installed';
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
