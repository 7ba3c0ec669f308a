import { Balancer } from './balancer.js';
import { ShopProcess } from './shop.process.js';

/** How the shops of a fleet are started. */
export interface FleetOptions {
  /** The shop's main file. */
  readonly file: string;
  /** Of each: they book in one place. */
  readonly settings: Readonly<Record<string, string>>;
  readonly count: number;
  readonly signal: AbortSignal;
  /** Told of a shop that ended without having been asked to. */
  readonly onFall: (how: string, number: number) => void;
}

/** Shops that book in one place, behind one address. Each may be killed, and started again. */
export class ShopFleet implements AsyncDisposable {
  /** What all of them logged. */
  readonly log: string[] = [];
  readonly #shops = new Map<number, ShopProcess>();

  private constructor(
    private readonly options: FleetOptions,
    private readonly balancer: Balancer,
  ) {}

  static async start(options: FleetOptions): Promise<ShopFleet> {
    const fleet = new ShopFleet(options, await Balancer.start());
    try {
      const numbers = Array.from({ length: options.count }, (_, number) => number);
      await Promise.all(numbers.map((number) => fleet.restart(number)));
      return fleet;
    } catch (error) {
      await fleet[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The one address. */
  get url(): string {
    return this.balancer.url;
  }

  /** How many there are, running or not. */
  get count(): number {
    return this.options.count;
  }

  /** Ends one with SIGKILL. */
  async kill(number: number): Promise<void> {
    const shop = this.#shops.get(number);
    this.#shops.delete(number);
    this.#balance();
    await shop?.kill();
  }

  /** Starts one that does not run. Rejects where it does not come up. */
  async restart(number: number): Promise<void> {
    const { file, settings, signal } = this.options;
    const shop = await ShopProcess.start(file, settings, signal, this.log);
    this.#shops.set(number, shop);
    this.#balance();
    void shop.ended.then((how) => {
      if (this.#shops.get(number) !== shop) return;
      this.#shops.delete(number);
      this.#balance();
      this.options.onFall(how, number);
    });
  }

  /** Closes them in order. */
  async [Symbol.asyncDispose](): Promise<void> {
    const shops = [...this.#shops.values()];
    this.#shops.clear();
    await Promise.all(shops.map((shop) => shop[Symbol.asyncDispose]()));
    await this.balancer[Symbol.asyncDispose]();
  }

  #balance(): void {
    this.balancer.targets = [...this.#shops.values()].map(({ url }) => url);
  }
}
