import { LoadBalancer } from './load-balancer.js';
import { ShopProcess } from './shop-process.js';
import type { TelemetryCollector } from './telemetry/telemetry-collector.js';

export interface ShopFleetOptions {
  /** The main file of the shop. */
  readonly file: string;
  /** The environment variables of each shop. All shops use the same database. */
  readonly settings: Readonly<Record<string, string>>;
  readonly count: number;
  /** The collector of the shops' telemetry; `null` starts the shops without telemetry. */
  readonly telemetry: TelemetryCollector | null;
  readonly signal: AbortSignal;
  /** A function that the fleet calls if a shop exits although the fleet has not stopped this shop. */
  readonly onUnexpectedExit: (reason: string) => void;
}

/** Several shops with one database, behind one address. Each shop can be killed and restarted. */
export class ShopFleet implements AsyncDisposable {
  /** The log lines of all shops. */
  readonly log: string[] = [];
  readonly #shops = new Map<number, ShopProcess>();

  private constructor(
    private readonly options: ShopFleetOptions,
    private readonly balancer: LoadBalancer,
  ) {}

  static async start(options: ShopFleetOptions): Promise<ShopFleet> {
    const fleet = new ShopFleet(options, await LoadBalancer.start());
    try {
      const numbers = Array.from({ length: options.count }, (_, number) => number);
      await Promise.all(numbers.map((number) => fleet.start(number)));
      return fleet;
    } catch (error) {
      await fleet[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Address of the load balancer. */
  get url(): string {
    return this.balancer.url;
  }

  /** The collector of the shops' telemetry; `null` starts the shops without telemetry. */
  get telemetry(): TelemetryCollector | null {
    return this.options.telemetry;
  }

  /** Number of shops, including shops that are not running. */
  get count(): number {
    return this.options.count;
  }

  /** Kills a shop with SIGKILL. */
  async kill(number: number): Promise<void> {
    const shop = this.#shops.get(number);
    this.#shops.delete(number);
    this.#updateTargets();
    await shop?.kill();
  }

  /** Starts a shop. Rejects if the shop does not listen in time. */
  async start(number: number): Promise<void> {
    const { file, settings, signal } = this.options;
    const telemetry = this.options.telemetry?.of(`shop ${number + 1}`) ?? null;
    const shop = await ShopProcess.start({ file, settings, log: this.log, telemetry }, signal);
    this.#shops.set(number, shop);
    this.#updateTargets();
    void shop.ended.then((reason) => {
      if (this.#shops.get(number) !== shop) return;
      this.#shops.delete(number);
      this.#updateTargets();
      this.options.onUnexpectedExit(reason);
    });
  }

  /** Stops all shops with SIGTERM, then the load balancer. */
  async [Symbol.asyncDispose](): Promise<void> {
    const shops = [...this.#shops.values()];
    this.#shops.clear();
    await Promise.all(shops.map((shop) => shop[Symbol.asyncDispose]()));
    await this.balancer[Symbol.asyncDispose]();
  }

  #updateTargets(): void {
    this.balancer.targets = [...this.#shops.values()].map(({ url }) => url);
  }
}
