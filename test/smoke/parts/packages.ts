import type { SmokePart } from '../smoke-part.ts';

/** Checks the files, dependencies and types of the tarballs. */
export const part: SmokePart = {
  description: 'the tarballs: files, dependencies, publint, attw',
  async run({ payments, consolePackage, emulator, engines }, checks) {
    for (const packed of [payments, consolePackage, emulator, ...engines]) {
      const { name } = packed.manifest;
      await checks.that(`AP-08 ${name}: the tarball contains only its build`, () =>
        packed.containsOnlyItsBuild(),
      );
      await checks.that(`AP-08 ${name}: the imports match the declared dependencies`, () =>
        packed.importsMatchDependencies(),
      );
      await checks.that(`AP-08 ${name}: refers to no file that is not in the tarball`, () =>
        packed.hasNoBrokenReferences(),
      );
      await checks.that(`AP-08 ${name}: publint reports nothing`, () => packed.passesPublint());
      await checks.that(`AP-08 ${name}: attw resolves every type`, () => packed.passesAttw());
    }
  },
};
