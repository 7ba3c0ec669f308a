import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';

/** A proxy on loopback that supports only CONNECT. It records the requested targets. */
export class ConnectProxy {
  readonly targets: string[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((_, response) => response.writeHead(405).end());

  static async start(): Promise<ConnectProxy> {
    const proxy = new ConnectProxy();
    proxy.#server.on('connection', (socket) => proxy.#keep(socket));
    proxy.#server.on('connect', (request, client: Socket, head: Buffer) => {
      proxy.targets.push(request.url ?? '');
      const [host, port] = (request.url ?? '').split(':');
      const server = connect(Number(port), host, () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n');
        server.write(head);
        server.pipe(client).pipe(server);
      });
      proxy.#keep(server);
    });
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
  }
}
