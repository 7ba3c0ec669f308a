/** A merchant's application to install the packages into. */
export interface Merchant {
  name: string;
  type: 'module' | 'commonjs';
  /** Exact versions, because an old npm on an old Node would choose old versions. */
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
  // As in Nest's starter. The compiler then fails if a type of the package in the application's signatures is not exported.
  declaration: true,
  rootDir: 'src',
  outDir: 'dist',
  types: ['node'],
};

const ANY_NEST = {
  'class-transformer': '0.5.1',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
};

/** Nest's starter with the strictest compiler options and every optional peer. */
const NEST_12: Merchant = {
  name: 'Nest 12, ES modules',
  type: 'module',
  dependencies: {
    ...ANY_NEST,
    '@nestjs/common': '12.5.1',
    '@nestjs/config': '12.0.1',
    '@nestjs/core': '12.5.1',
    '@nestjs/platform-express': '12.5.1',
    '@nestjs/platform-fastify': '12.5.0',
    '@nestjs/terminus': '12.1.0',
    '@opentelemetry/api': '1.10.0',
    '@types/express': '5.0.6',
    '@types/node': '24.19.2',
    '@types/pg': '8.23.1',
    'class-validator': '0.15.1',
    pg: '8.23.1',
    typescript: '6.0.3',
  },
  compilerOptions: { ...STRICT, exactOptionalPropertyTypes: true, verbatimModuleSyntax: true },
};

/** An application of the previous major in CommonJS, with the compiler and types of that time. */
const NEST_11: Merchant = {
  name: 'Nest 11, CommonJS',
  type: 'commonjs',
  dependencies: {
    ...ANY_NEST,
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

/** The oldest version of every peer that package.json allows. */
const OLDEST_PEERS: Merchant = {
  ...NEST_11,
  name: 'Nest 11.1.4, CommonJS, oldest peers',
  dependencies: {
    ...NEST_11.dependencies,
    '@nestjs/common': '11.1.4',
    '@nestjs/config': '4.0.0',
    '@nestjs/core': '11.1.4',
    '@nestjs/platform-express': '11.1.4',
    '@nestjs/platform-fastify': '11.1.4',
    '@opentelemetry/api': '1.9.0',
    'class-transformer': '0.5.1',
    'class-validator': '0.14.0',
    'reflect-metadata': '0.2.0',
    rxjs: '7.8.0',
  },
};

export const MERCHANTS: readonly Merchant[] = [NEST_12, NEST_11, OLDEST_PEERS];
export const ADAPTERS = ['express', 'fastify'] as const;

/** Entries that import an optional peer, and the peer. All other entries must load without it. */
export const OPTIONAL_PEERS: Readonly<Record<string, string>> = {
  'nestjs-payments/health': '@nestjs/terminus',
  'nestjs-payments/otel': '@opentelemetry/api',
  'nestjs-payments/postgres': 'pg',
  'nestjs-payments-console': 'class-validator',
};
