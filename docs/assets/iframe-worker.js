// A page that was opened from the file system may start no worker, and the search runs in one. There, a worker is a
// hidden frame that runs the same script; messages are handed over by function calls, later, as between threads.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      this.inside = new Promise((resolve) => {
        const start = () => {
          document.body.append(this.frame);
          const inside = this.frame.contentWindow;
          const run = (address) =>
            new Promise((done, failed) => {
              const script = inside.document.createElement("script");
              Object.assign(script, { src: new URL(address, location), onload: done, onerror: failed });
              inside.document.body.append(script);
            });
          inside.postMessage = (data) => setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
          inside.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => run(next)), Promise.resolve());
          run(url).then(() => resolve(inside));
        };
        if (document.body) start();
        else addEventListener("DOMContentLoaded", start);
      });
    }

    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
