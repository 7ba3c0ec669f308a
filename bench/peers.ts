import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const FOLDER = import.meta.dirname;
const INSTALLED = join(FOLDER, 'node_modules', '.package-lock.json');

/** Installs the packages that nestjs-payments is compared with, if they are missing or the lockfile has changed. */
export function installPeers(): void {
  const lock = join(FOLDER, 'package-lock.json');
  if (existsSync(INSTALLED) && statSync(INSTALLED).mtimeMs >= statSync(lock).mtimeMs) return;
  console.log('Installing the compared packages into bench/ …');
  const cli = process.env['npm_execpath'];
  const [program, args] = cli ? [process.execPath, [cli, 'ci']] : ['npm', ['ci']];
  const env = Object.fromEntries(
    // npm sets these variables for the root package. They are wrong for this one.
    Object.entries(process.env).filter(
      ([name]) => !/^npm_(package|lifecycle|config_local)/.test(name),
    ),
  );
  const { status } = spawnSync(program, args, { cwd: FOLDER, env, stdio: 'inherit' });
  if (status !== 0) throw new Error('npm ci in bench/ failed. Its output is above.');
}

/** The versions of Node and of the measured packages. @throws if there are several copies of Nest. */
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
