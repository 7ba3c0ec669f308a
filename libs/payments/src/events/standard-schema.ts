/**
 * A schema of any library that implements Standard Schema 1, for example zod, valibot or arktype. `Output` is the type of
 * the data after the validation. The type is a copy of the parts of the specification that the module uses, see
 * https://standardschema.dev.
 */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (
      value: unknown,
    ) => StandardSchemaResult<Output> | Promise<StandardSchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** The result of a {@link StandardSchema}: the data, or the places where the data does not match the schema. */
export type StandardSchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        /** The module does not use the message, because it may contain a value. */
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/** Matches a plain field name. Any other key may be a value, for example a phone number that is a key of a record. */
const FIELD = /^[A-Za-z_$][\w$-]{0,63}$/;

/**
 * Returns the path of each issue, such as `items[0].amount`, without duplicates. The path of an issue with the whole
 * data is `data`. A key that is not a plain field name becomes `*`.
 */
export function pathsOf(issues: NonNullable<StandardSchemaResult<unknown>['issues']>): string[] {
  const paths = issues.map(({ path = [] }) =>
    path
      .map((segment) => (typeof segment === 'object' ? segment.key : segment))
      .map((key) => (typeof key === 'number' ? `[${key}]` : `.${nameOf(key)}`))
      .join('')
      .replace(/^\./, ''),
  );
  return [...new Set(paths.map((path) => path || 'data'))];
}

function nameOf(key: PropertyKey): string {
  return typeof key === 'string' && FIELD.test(key) ? key : '*';
}

export function isStandardSchema(value: unknown): value is StandardSchema {
  // The schemas of arktype are functions.
  const schema = value as StandardSchema | null | undefined;
  return typeof schema?.['~standard']?.validate === 'function';
}
