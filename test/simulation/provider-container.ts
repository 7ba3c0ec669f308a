import 'reflect-metadata';

type Class<T> = new (...parameters: never[]) => T;

/**
 * Creates the Nest providers of one process. Does not create a Nest application, because this would take most of the
 * time.
 */
export class Container {
  readonly #instances = new Map<unknown, unknown>();

  /** @param values by injection token */
  constructor(values: Iterable<readonly [unknown, unknown]>) {
    for (const [token, value] of values) this.#instances.set(token, value);
  }

  get<T>(type: Class<T>): T {
    return this.#resolve(type) as T;
  }

  #resolve(token: unknown): unknown {
    if (!this.#instances.has(token)) {
      if (typeof token !== 'function')
        throw new Error(`The simulation provides no ${String(token)}`);
      const types = (Reflect.getMetadata('design:paramtypes', token) ?? []) as unknown[];
      const tokens = (Reflect.getMetadata('self:paramtypes', token) ?? []) as {
        readonly index: number;
        readonly param: unknown;
      }[];
      const parameters = types.map((type, index) =>
        this.#resolve(tokens.find((one) => one.index === index)?.param ?? type),
      );
      this.#instances.set(token, new (token as Class<unknown>)(...(parameters as never[])));
    }
    return this.#instances.get(token);
  }
}
