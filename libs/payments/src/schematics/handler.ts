import { posix } from 'node:path';
import type { DirEntry, Rule, Tree } from '@angular-devkit/schematics';
import { addImport, addToModule } from './module-source.js';
import { changeModule, relativeSpecifier, template } from './project-files.js';

/** Options of the schematic `handler`, see `schematics/handler.json`. */
export interface HandlerOptions {
  readonly name: string;
  readonly path: string;
  readonly sourceRoot: string;
  readonly flat: boolean;
  readonly spec: boolean;
}

/**
 * Writes a handler and its test, and adds the handler to the providers of the nearest module.
 *
 * @throws Error if neither the handler's folder nor a folder above it contains a module file, or if a file that the
 *   schematic would write already exists.
 */
export function handler({ name, path, sourceRoot, flat, spec }: HandlerOptions): Rule {
  return (tree) => {
    const place = posix.join(sourceRoot, path, flat ? posix.dirname(name) : name);
    const base = posix.basename(name);
    const module = nearestModule(tree.getDir(place));
    if (module === undefined) {
      throw new Error(
        `Neither ${place} nor a folder above it contains a module file. Create one: nest generate module ${name}`,
      );
    }
    addHandler(tree, module, { folder: place, name: base, spec });
  };
}

function nearestModule(folder: DirEntry | null): string | undefined {
  if (folder === null) return undefined;
  const file = folder.subfiles.find((name) => name.endsWith('.module.ts'));
  return file === undefined ? nearestModule(folder.parent) : posix.join(folder.path, file);
}

/** Writes `<folder>/<name>.handler.ts` and its test, and adds the handler to the providers of a module. */
export function addHandler(
  tree: Tree,
  module: string,
  { folder, name, spec }: { folder: string; name: string; spec: boolean },
): void {
  const className = `${name.replaceAll(/(?:^|[-_.])(\w)/g, (_, letter: string) => letter.toUpperCase())}Handler`;
  const file = posix.join(folder, `${name}.handler`);
  const code = template('handler').replaceAll('__CLASS__', className);
  tree.create(`${file}.ts`, code.replace('__NAME__', name));
  if (spec) {
    const test = template('handler-test').replaceAll('__CLASS__', className);
    const specifier = relativeSpecifier(tree, file, file);
    tree.create(`${file}.spec.ts`, test.replace('__SPECIFIER__', specifier));
  }
  changeModule(tree, module, (source) =>
    addToModule(
      addImport(source, [className], relativeSpecifier(tree, module, file)),
      'providers',
      className,
    ),
  );
}
