import { expect, it } from '@jest/globals';
import { Controller, Injectable, Module, UseFilters, UseGuards } from '@nestjs/common';
import type { CanActivate } from '@nestjs/common';
import { OnPaymentEvent, PaymentInbox } from 'nestjs-payments';
import { onOneAdapter } from '../../support/webhook/handler-application.js';

@Injectable()
class Orders {
  @OnPaymentEvent('a')
  handle(): void {}
}

class AllowAll implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

const CODE = { code: 'handlers_invalid' };

onOneAdapter('handlers that cannot work', (start) => {
  it('IN-37 the application does not boot if two handlers have the same default name; the error names both handlers and the fix', async () => {
    @Injectable()
    class Others {
      @OnPaymentEvent('a')
      handle(): void {}
    }
    @Module({ providers: [Others] })
    class OthersModule {}
    const rejected = expect(start({ providers: [Orders], imports: [OthersModule] })).rejects;
    await rejected.toMatchObject(CODE);
    await rejected.toThrow(
      /named "a#handle": Orders\.handle \(App\) and Others\.handle \(OthersModule\).*\{ name: '…' \}/,
    );
  });

  it('IN-37 the application boots with two handlers of the same type and method name if one of them sets another name', async () => {
    @Injectable()
    class Others {
      @OnPaymentEvent('a', { name: 'others' })
      handle(): void {}
    }
    await using app = await start({ providers: [Orders, Others] });
    const handlers = await app.app.get(PaymentInbox).handlers();
    expect(handlers.map(({ name }) => name)).toEqual(['a#handle', 'others']);
  });

  it('WH-18 the application does not boot if two modules provide the same class; the error names both modules', async () => {
    @Module({ providers: [Orders] })
    class A {}
    @Module({ providers: [Orders] })
    class B {}
    const rejected = expect(start({ imports: [A, B] })).rejects;
    await rejected.toMatchObject(CODE);
    await rejected.toThrow(/\(A\) and Orders\.handle \(B\).*two modules provide the same class/);
  });

  it('WH-18 the application boots with a class that one module provides and exports to another', async () => {
    @Module({ providers: [Orders], exports: [Orders] })
    class A {}
    @Module({ imports: [A] })
    class B {}
    await using app = await start({ imports: [A, B] });
    expect(app.url).toContain('http');
  });

  it('WH-18 the application does not boot if a class with a handler is both a provider and a controller', async () => {
    @Controller('twice')
    class Twice {
      @OnPaymentEvent('a')
      handle(): void {}
    }
    await expect(start({ providers: [Twice], controllers: [Twice] })).rejects.toMatchObject(CODE);
  });

  it('WH-18 the application does not boot if another decorator replaced the decorated method', async () => {
    const wrap: MethodDecorator = (_target, _name, descriptor: PropertyDescriptor) => {
      descriptor.value = () => {};
    };
    class Base {
      @wrap
      @OnPaymentEvent('a')
      handle(): void {}
    }
    @Injectable()
    class Wrapped extends Base {}
    await expect(start({ providers: [Wrapped] })).rejects.toThrow(
      /above @OnPaymentEvent on Wrapped\.handle replaced the method/,
    );
  });

  it.each([
    ['made by a factory', { provide: 'X', useFactory: () => new Guarded() }],
    ['a value', { provide: 'X', useValue: null as unknown }],
  ])(
    'WH-19 the application does not boot if Nest would skip the guard of a provider that is %s',
    async (_, provider) => {
      if ('useValue' in provider) provider.useValue = new Guarded();
      await expect(start({ providers: [provider] })).rejects.toThrow(
        /AllowAll is applied to the payment handler Guarded\.handle.*new AllowAll/,
      );
    },
  );

  it('WH-19 the application does not boot if Nest would skip a filter class, and boots with a guard instance', async () => {
    class Filter {
      catch(): void {}
    }
    @UseFilters(Filter)
    class Filtered {
      @OnPaymentEvent('a')
      handle(): void {}
    }
    await expect(
      start({ providers: [{ provide: 'X', useFactory: () => new Filtered() }] }),
    ).rejects.toThrow(/Filter is applied to the payment handler Filtered\.handle/);
    class Fine {
      @UseGuards(new AllowAll())
      @OnPaymentEvent('a')
      handle(): void {}
    }
    await using app = await start({ providers: [{ provide: 'X', useFactory: () => new Fine() }] });
    expect(app.url).toContain('http');
  });
});

class Guarded {
  @UseGuards(AllowAll)
  @OnPaymentEvent('a')
  handle(): void {}
}
