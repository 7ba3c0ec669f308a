import { Body, Controller, Get, Param, Post, Sse } from '@nestjs/common';
import type { MessageEvent } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { EventStreamsService } from '../live/event-streams.service.js';
import { CreateOrderDto } from './order.js';
import { LiveOrdersService } from './live-orders.service.js';
import type { OrderView } from './order.js';
import { OrdersService } from './orders.service.js';

/** The API of orders: `POST /api/orders`, `GET /api/orders/:reference` and its events. */
@Controller('api/orders')
export class OrdersController {
  constructor(
    private readonly orders: OrdersService,
    private readonly live: LiveOrdersService,
    private readonly streams: EventStreamsService,
  ) {}

  @Post()
  create(@Body() order: CreateOrderDto): Promise<OrderView> {
    return this.orders.create(order);
  }

  @Get(':reference')
  get(@Param('reference') reference: string): Promise<OrderView> {
    return this.orders.get(reference);
  }

  /** Sends server-sent events named `state`: the current order, and the order after each change. */
  @Sse(':reference/events')
  async events(@Param('reference') reference: string): Promise<Observable<MessageEvent>> {
    await this.orders.get(reference);
    return this.streams.open(this.live.watch(reference));
  }
}
