import { inspect, types } from 'node:util';
import type { INestApplication } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';

const ONE_LEVEL = { depth: 0, maxArrayLength: null, maxStringLength: null } as const;

/**
 * The output of `util.inspect` for a value at unlimited depth, but with each object only once: for Nest's container,
 * `inspect` itself would print gigabytes.
 */
export function visibleText(root: unknown): string {
  const texts: string[] = [];
  const seen = new Set<unknown>();
  const waiting = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (seen.has(value)) continue;
    seen.add(value);
    texts.push(inspect(value, ONE_LEVEL));
    waiting.push(...partsOf(value));
  }
  return texts.join('\n');
}

function partsOf(value: unknown): unknown[] {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return [];
  // A custom function prints the whole object.
  if (inspect.custom in value) return [inspect(value, { ...ONE_LEVEL, depth: Infinity })];
  if (ArrayBuffer.isView(value)) return [];
  const properties = Object.entries(Object.getOwnPropertyDescriptors(value))
    .filter(([, { enumerable }]) => enumerable)
    .flatMap(([name, descriptor]) => [name, descriptor.value as unknown]);
  if (types.isMap(value)) return [...properties, ...value.keys(), ...value.values()];
  if (types.isSet(value)) return [...properties, ...value];
  return properties;
}

/** {@link visibleText} of Nest's container and of every instance in it, which `inspect` does not print with the container. */
export function containerText(app: INestApplication): string {
  const container = app.get(ModulesContainer);
  const instances: unknown[] = [...container.values()].flatMap(({ providers, controllers }) =>
    [...providers.values(), ...controllers.values()].map(({ instance }) => instance),
  );
  return visibleText([container, instances]);
}
