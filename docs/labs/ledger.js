// Keeps the ledger: in the browser after each change, and as a file when the reader asks.
export const keeper = (lab) => {
  const key = `mlsysim-lab-${lab}`;
  const attempt = (what) => {
    try {
      return { text: what(), error: null };
    } catch (error) {
      return { text: null, error: error.name || "Error" };
    }
  };
  return {
    load: () => attempt(() => localStorage.getItem(key)),
    save: (ledger) => attempt(() => localStorage.setItem(key, JSON.stringify(ledger))),
    forget: () => attempt(() => localStorage.removeItem(key)),
    // Called when another tab writes or removes the ledger.
    watch: (tell) => addEventListener("storage", (event) => (event.key === key || event.key === null) && tell()),
  };
};

export const download = (ledger, name) => {
  const address = URL.createObjectURL(new Blob([`${JSON.stringify(ledger, null, 1)}\n`], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
};
