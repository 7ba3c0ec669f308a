/** An application that a merchant may have, to install the package into. */
export interface Merchant {
  name: string;
  type: 'module' | 'commonjs';
  /** Exact, because an old npm on an old Node would pick old versions. */
  dependencies: Record<string, string>;
  compilerOptions: Record<string, unknown>;
}

const STRICT = {
  target: 'ES2023',
  module: 'nodenext',
  strict: true,
  skipLibCheck: false,
  noUncheckedIndexedAccess: true,
  noImplicitOverride: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  // As in Nest's starter: every type of ours in a signature of the application must have a name.
  declaration: true,
  rootDir: 'src',
  outDir: 'dist',
  types: ['node'],
};

const ANY_NEST = {
  axios: '1.21.1',
  'class-transformer': '0.5.1',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
};

/** What Nest's own starter gives on the day it is made, and the strictest compiler there is. */
const NEST_12: Merchant = {
  name: 'Nest 12, ES modules',
  type: 'module',
  dependencies: {
    ...ANY_NEST,
    '@nestjs/axios': '12.0.1',
    '@nestjs/common': '12.5.1',
    '@nestjs/config': '12.0.1',
    '@nestjs/core': '12.5.1',
    '@nestjs/platform-express': '12.5.1',
    '@nestjs/platform-fastify': '12.5.0',
    '@types/express': '5.0.6',
    '@types/node': '24.19.2',
    'class-validator': '0.15.1',
    typescript: '6.0.3',
  },
  compilerOptions: { ...STRICT, exactOptionalPropertyTypes: true, verbatimModuleSyntax: true },
};

/** An application of the major before, still CommonJS, with the compiler and the types of its time. */
const NEST_11: Merchant = {
  name: 'Nest 11, CommonJS',
  type: 'commonjs',
  dependencies: {
    ...ANY_NEST,
    '@nestjs/axios': '4.0.1',
    '@nestjs/common': '11.2.10',
    '@nestjs/config': '4.0.4',
    '@nestjs/core': '11.2.10',
    '@nestjs/platform-express': '11.2.10',
    '@nestjs/platform-fastify': '11.2.8',
    '@types/express': '5.0.6',
    '@types/node': '22.20.5',
    'class-validator': '0.14.4',
    typescript: '5.9.3',
  },
  compilerOptions: STRICT,
};

export const MERCHANTS: readonly Merchant[] = [NEST_12, NEST_11];
export const ADAPTERS = ['express', 'fastify'] as const;
