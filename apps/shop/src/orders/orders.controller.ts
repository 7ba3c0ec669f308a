import { Body, Controller, Get, NotFoundException, Param, Post, Sse } from '@nestjs/common';
import type { MessageEvent } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { EventStreams } from '../live/event.streams.js';
import { LiveBooks } from '../live/live.books.js';
import { NewOrder } from './new-order.dto.js';
import type { OrderView } from './order.js';
import { Orders } from './orders.service.js';

/** `POST /orders`, `GET /orders/:reference`, and its events. */
@Controller('orders')
export class OrdersController {
  constructor(
    private readonly orders: Orders,
    private readonly live: LiveBooks,
    private readonly streams: EventStreams,
  ) {}

  @Post()
  place(@Body() order: NewOrder): Promise<OrderView> {
    return this.orders.place(order);
  }

  @Get(':reference')
  async show(@Param('reference') reference: string): Promise<OrderView> {
    const order = await this.orders.find(reference);
    if (order === undefined) throw new NotFoundException(`there is no order ${reference}`);
    return order;
  }

  /** The order as `GET` answers it, and again whenever it changes: events named `state`. */
  @Sse(':reference/events')
  async follow(@Param('reference') reference: string): Promise<Observable<MessageEvent>> {
    await this.show(reference);
    return this.streams.open(this.live.order(reference));
  }
}
