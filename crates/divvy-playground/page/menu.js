// A menu that opens beside a button.

import { element } from './element.js';

/** The deeds that fit a worker, as a menu; one at a time is open. */
export class WorkerMenu {
  #deeds;
  #node = element('div', { class: 'floating', role: 'menu', hidden: true });
  #button = null;

  constructor(deeds) {
    this.#deeds = deeds;
    document.body.append(this.#node);
    this.#node.addEventListener('keydown', (event) => this.#key(event));
    document.addEventListener('pointerdown', (event) => {
      if (!this.#node.hidden && !this.#node.contains(event.target)) this.close();
    });
    addEventListener('resize', () => this.close());
    // Scrolled lists take the button away from under the menu.
    document.addEventListener('scroll', (event) => event.target !== this.#node && this.close(), true);
  }

  /** Whether there is anything to do with it. */
  offers(worker) {
    return this.#deeds.for(worker).length > 0;
  }

  open(worker, button) {
    if (this.#button === button) return this.close();
    this.#button = button;
    const items = this.#deeds.for(worker).map((deed) => element('button', {
      role: 'menuitem',
      tabindex: -1,
      class: deed.danger ? 'danger' : null,
      onclick: () => {
        this.close();
        deed.run();
      },
    }, element('b', {}, deed.label), element('small', {}, deed.about)));
    this.#node.setAttribute('aria-label', worker.name);
    this.#node.replaceChildren(...items);
    this.#node.hidden = false;
    button.setAttribute('aria-expanded', 'true');
    place(this.#node, button);
    items[0]?.focus({ preventScroll: true });
  }

  close() {
    if (this.#node.hidden) return;
    const held = this.#node.contains(document.activeElement);
    this.#node.hidden = true;
    this.#button?.setAttribute('aria-expanded', 'false');
    if (held) this.#button?.focus({ preventScroll: true });
    this.#button = null;
  }

  #key(event) {
    const items = [...this.#node.children];
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to !== undefined) items[(to + items.length) % items.length].focus();
    else if (event.key === 'Escape' || event.key === 'Tab') this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Below the button if there is room, else above, and inside of the window. */
function place(node, button) {
  const around = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = node;
  const below = around.bottom + 4 + height <= innerHeight;
  const top = below ? around.bottom + 4 : Math.max(8, Math.min(around.top - height - 4, innerHeight - height - 8));
  const left = Math.max(8, Math.min(around.right - width, innerWidth - width - 8));
  node.style.top = `${top}px`;
  node.style.left = `${left}px`;
}
