// The specs of test/slow run only if a path on the command line names them.
const slow = process.argv.some((argument) => argument.includes('test/slow'));

/** @type {import('jest').Config} */
export default {
  testMatch: [
    '<rootDir>/libs/*/src/**/*.spec.ts',
    '<rootDir>/apps/*/src/**/*.spec.ts',
    '<rootDir>/test/{chaos,e2e,engine-contract,mutants,simulation,store-contract}/**/*.spec.ts',
    ...(slow ? ['<rootDir>/test/slow/**/*.spec.ts'] : []),
    '<rootDir>/bench/**/*.spec.ts',
  ],
  // Prints results only; the log of a test is printed if the test fails.
  testEnvironment: '<rootDir>/test/support/jest/quiet-environment.js',
  // More than the two cores of the pipeline, because many tests wait for processes and servers.
  maxWorkers: 4,
  testSequencer: '<rootDir>/test/support/jest/slow-specs-first.js',
  workerIdleMemoryLimit: '1GB',
  // Long enough for a machine that is busy with something else.
  testTimeout: 90_000,
  extensionsToTreatAsEsm: ['.ts'],
  resolver: '<rootDir>/test/support/jest/typescript-resolver.cjs',
  transform: {
    '\\.ts$': [
      '@swc/jest',
      {
        module: { type: 'es6' },
        sourceMaps: 'inline',
        jsc: {
          target: 'es2023',
          keepClassNames: true,
          parser: { syntax: 'typescript', decorators: true },
          transform: {
            legacyDecorator: true,
            decoratorMetadata: true,
            useDefineForClassFields: true,
          },
        },
      },
    ],
  },
};
