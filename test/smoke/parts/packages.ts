import type { PackedPackage } from '../packed-package.ts';
import type { SmokePart } from '../smoke-part.ts';

/** The tarballs themselves: their files, their dependencies and their types. */
export const part: SmokePart = {
  description: 'the tarballs: files, dependencies, publint, attw',
  async run({ payments, consolePackage, emulator }, checks) {
    for (const packed of [payments, consolePackage, emulator] satisfies PackedPackage[]) {
      const { name } = packed.manifest;
      await checks.that(`AP-08 ${name}: the tarball holds its build and nothing else`, () =>
        packed.holdsNothingButItsBuild(),
      );
      await checks.that(
        `AP-08 ${name}: imports what it declares, and declares what it imports`,
        () => packed.importsOnlyWhatItDeclares(),
      );
      await checks.that(`AP-08 ${name}: refers to no document that it lacks`, () =>
        packed.refersToNothingItLacks(),
      );
      await checks.that(`AP-08 ${name}: publint reports nothing`, () => packed.pleasesPublint());
      await checks.that(`AP-08 ${name}: attw resolves every type`, () => packed.pleasesAttw());
    }
  },
};
